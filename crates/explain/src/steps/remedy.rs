//! Commands that mend something, safe to paste: whatever comes from an object is quoted.

use fairlead_api::source::Key;
use fairlead_api::view::{ServicePort, TargetPort};
use serde_json::{Value, json};

use super::Case;
use super::exists::type_name;

/// A word of a command line.
pub(crate) fn quote(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// `web -n shop`
pub(crate) fn named(key: &Key) -> String {
    format!("{} -n {}", quote(&key.name), quote(&key.namespace))
}

/// Looks at an object.
pub(crate) fn get(kind: &str, key: &Key) -> String {
    format!("kubectl get {kind} {} -o yaml", named(key))
}

/// Tells of an object and its Events.
pub(crate) fn describe(kind: &str, key: &Key) -> String {
    format!("kubectl describe {kind} {}", named(key))
}

/// What a container wrote before it ended.
pub(crate) fn logs(pod: &Key, container: &str, previous: bool) -> String {
    format!("kubectl logs {} -c {}{}", named(pod), quote(container), if previous { " --previous" } else { "" })
}

/// What somebody wrote of a port.
fn port(port: &ServicePort) -> Value {
    let target = match &port.target_port {
        TargetPort::Number(0) => json!(port.port),
        TargetPort::Number(number) => json!(number),
        TargetPort::Name(name) => json!(name),
    };
    let mut made = json!({"port": port.port, "protocol": port.protocol.as_str(), "targetPort": target});
    if !port.name.is_empty() {
        made["name"] = json!(port.name);
    }
    made
}

impl Case<'_> {
    /// Changes the Service.
    pub(crate) fn patch(&self, change: &Value) -> String {
        format!("kubectl patch service {} -p {}", named(self.key), quote(&change.to_string()))
    }

    /// Makes the same Service in another namespace. What was given to this one stays with it: its address and node ports.
    pub(crate) fn copy_to(&self, namespace: &str) -> String {
        let spec = &self.service.spec;
        let ports: Vec<Value> = spec.ports.iter().map(port).collect();
        let mut made = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": &*self.key.name, "namespace": namespace},
            "spec": {"type": type_name(spec.kind), "selector": spec.selector, "ports": ports},
        });
        if self.service.is_headless() {
            made["spec"]["clusterIP"] = json!("None");
        }
        if let Some(class) = &spec.load_balancer_class {
            made["spec"]["loadBalancerClass"] = json!(class);
        }
        format!("echo {} | kubectl apply -f -", quote(&made.to_string()))
    }

    /// Sets a field of a port of the Service.
    pub(crate) fn set_port(&self, port: &ServicePort, field: &str, value: &Value) -> String {
        let at = self.service.spec.ports.iter().position(|own| own == port).unwrap_or_default();
        let change =
            json!([{"op": "replace", "path": format!("/spec/ports/{at}/{field}"), "value": value}]).to_string();
        format!("kubectl patch service {} --type=json -p {}", named(self.key), quote(&change))
    }

    /// Shows the ports of the Service.
    pub(crate) fn show(&self) -> String {
        format!("kubectl get service {} -o wide", named(self.key))
    }
}
