//! How set-ups are written: a Service `web` and a Pod `web-1` that would serve it, with what is different.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::lab::{LIMIT, Lab, Said};

/// What Pods run: it says hello to whoever comes.
const SERVE: &str = r#"
import socket, sys
kind, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in host else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((host, port))
if kind == "udp":
    while True:
        data, who = s.recvfrom(512)
        s.sendto(b"hello", who)
s.listen(64)
while True:
    c, _ = s.accept()
    c.sendall(b"hello")
    c.close()
"#;

/// One set-up, in a namespace of its name.
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    pub(crate) objects: Vec<Value>,
    /// What is asked: the words behind `fairlead explain`.
    pub(crate) ask: &'static str,
    /// The cause that must be found; `None`: none.
    pub(crate) cause: Option<&'static str>,
}

/// A set-up.
pub(crate) fn setup(name: &'static str, ask: &'static str, cause: &'static str, objects: Vec<Value>) -> Setup {
    Setup { name, objects, ask, cause: Some(cause) }
}

/// One that works.
pub(crate) fn works(name: &'static str, ask: &'static str, objects: Vec<Value>) -> Setup {
    Setup { name, objects, ask, cause: None }
}

/// The Service, with what is different; null takes something away.
pub(crate) fn service(more: Value) -> Value {
    let usual = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    merged(usual, more)
}

/// A Pod that serves at port 8080, with what is different.
pub(crate) fn pod(more: Value) -> Value {
    let usual = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "labels": {"app": "web"}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container(serve("tcp 0.0.0.0 8080"), json!({}))]},
    });
    merged(usual, more)
}

/// A Pod whose only container is another.
pub(crate) fn pod_with(container: Value) -> Value {
    pod(json!({"spec": {"containers": [container]}}))
}

/// A Pod that waits for nothing, to be a client.
pub(crate) fn client(more: Value) -> Value {
    let sleeps = container(json!(["sleep", "1000"]), json!({"ports": []}));
    let usual = json!({"metadata": {"name": "client", "labels": {"app": "client"}}, "spec": {"containers": [sleeps]}});
    pod(merged(usual, more))
}

/// A container with a port named http.
pub(crate) fn container(command: Value, more: Value) -> Value {
    let ports = json!([{"name": "http", "containerPort": 8080}]);
    merged(json!({"name": "main", "image": "host", "command": command, "ports": ports}), more)
}

/// A command that serves: protocol, address and port.
pub(crate) fn serve(words: &str) -> Value {
    let mut command = vec!["python3", "-S", "-c", SERVE];
    command.extend(words.split(' '));
    json!(command)
}

/// A slice made by hand, for `web`, with what is different.
pub(crate) fn slice(more: Value) -> Value {
    let usual = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "by-hand", "labels": {"kubernetes.io/service-name": "web"}},
        "endpoints": [{"addresses": ["192.0.2.200"]}], "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
    });
    merged(usual, more)
}

/// A Service without a selector.
pub(crate) fn by_hand(more: Value) -> Value {
    let mut made = service(more);
    made["spec"].as_object_mut().unwrap().remove("selector");
    made
}

/// Fields of the second replace those of the first, objects are merged, null removes.
fn merged(mut first: Value, second: Value) -> Value {
    match (first.as_object_mut(), second) {
        (Some(fields), Value::Object(more)) => {
            for (name, value) in more {
                if value.is_null() {
                    fields.remove(&name);
                } else {
                    let before = fields.remove(&name).unwrap_or_default();
                    fields.insert(name, merged(before, value));
                }
            }
            first
        }
        (_, second) => second,
    }
}

/// Makes set-ups, waits until each is explained as it should be, and returns what was said then, when nothing changes any more.
pub(crate) fn settled(lab: &Lab, setups: &[Setup]) -> BTreeMap<&'static str, Said> {
    for setup in setups {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": setup.name}});
        lab.create("", &namespace);
        setup.objects.iter().for_each(|object| {
            let into = object["metadata"]["namespace"].as_str().unwrap_or(setup.name);
            lab.create(into, object);
        });
    }
    // As long as one more settles now and then, the machine is only slow.
    let mut until = Instant::now() + LIMIT;
    let mut open: Vec<&Setup> = setups.iter().collect();
    while !open.is_empty() && Instant::now() < until {
        let before = open.len();
        open.retain(|setup| lab.explain(setup.name, setup.ask).first() != setup.cause);
        if open.len() < before {
            until = Instant::now() + LIMIT;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    setups.iter().map(|setup| (setup.name, lab.explain(setup.name, setup.ask))).collect()
}

/// All set-ups that were not explained as they should be, for people.
pub(crate) fn mistakes(setups: &[Setup], said: &BTreeMap<&'static str, Said>) -> Vec<String> {
    let wrong = |setup: &&Setup| {
        let said = &said[setup.name];
        let fine = match setup.cause {
            Some(cause) => said.first() == Some(cause) && said.code == 1 && !said.remedy().is_empty(),
            None => said.first().is_none() && said.code == 0,
        };
        !fine
    };
    let tell = |setup: &Setup| {
        let said = &said[setup.name];
        let (wanted, first) = (setup.cause.unwrap_or("nothing"), said.first().unwrap_or("nothing"));
        format!("{}: {first} instead of {wanted}\n{}", setup.name, said.words())
    };
    setups.iter().filter(wrong).map(tell).collect()
}
