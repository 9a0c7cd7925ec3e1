//! The containers of a Pod.

use fairlead_api::Look;
use serde_json::Value;

use super::super::{Page, moment, or_none};

/// Containers with what is known of them.
pub(super) fn containers(page: &mut Page, title: &str, containers: &[Value], statuses: &[Value], pod: &Value) {
    page.line(0, format!("{title}:{}", if containers.is_empty() { " <none>" } else { "" }));
    for container in containers {
        let status = statuses.iter().find(|status| status.text("name") == container.text("name"));
        basics(page, container, status);
        command(page, container);
        if let Some(status) = status {
            state(page, "State", status.at("state"));
            if !status.at("lastState").at("terminated").is_null() {
                state(page, "Last State", status.at("lastState"));
            }
            page.line(2, format!("Ready:\t{}", if status.flag("ready") { "True" } else { "False" }));
            page.line(2, format!("Restart Count:\t{}", status.int("restartCount")));
        }
        resources(page, container.at("resources"));
        for (title, name) in
            [("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe")]
        {
            if !container.at(name).is_null() {
                page.line(2, format!("{title}:\t{}", probe(container.at(name))));
            }
        }
        environment(page, container, pod);
        mounts(page, container);
    }
}

fn basics(page: &mut Page, container: &Value, status: Option<&Value>) {
    page.line(1, format!("{}:", container.text("name")));
    if let Some(status) = status {
        page.line(2, format!("Container ID:\t{}", status.text("containerID")));
    }
    page.line(2, format!("Image:\t{}", container.text("image")));
    if let Some(status) = status {
        page.line(2, format!("Image ID:\t{}", status.text("imageID")));
    }
    for (title, name) in [("Port", "containerPort"), ("Host Port", "hostPort")] {
        let ports: Vec<String> = container.list("ports").iter().map(|port| port_text(port, name)).collect();
        let plural = if ports.len() > 1 { "s" } else { "" };
        page.line(2, format!("{title}{plural}:\t{}", or_none(&ports.join(", "))));
    }
}

fn port_text(port: &Value, number: &str) -> String {
    let text = format!("{}/{}", port.int(number), port.text("protocol"));
    match port.text("name") {
        "" => text,
        name => format!("{text} ({name})"),
    }
}

fn command(page: &mut Page, container: &Value) {
    for (title, name) in [("Command", "command"), ("Args", "args")] {
        let words = container.texts(name);
        if !words.is_empty() {
            page.line(2, format!("{title}:"));
            words.iter().flat_map(|word| word.split('\n')).for_each(|line| page.line(3, line));
        }
    }
}

fn state(page: &mut Page, title: &str, state: &Value) {
    let terminated = state.at("terminated");
    if !state.at("running").is_null() {
        page.line(2, format!("{title}:\tRunning"));
        page.line(3, format!("Started:\t{}", moment(state.at("running").text("startedAt"))));
    } else if !terminated.is_null() {
        page.line(2, format!("{title}:\tTerminated"));
        for (title, name) in [("Reason", "reason"), ("Message", "message")] {
            if !terminated.text(name).is_empty() {
                page.line(3, format!("{title}:\t{}", terminated.text(name)));
            }
        }
        page.line(3, format!("Exit Code:\t{}", terminated.int("exitCode")));
        if terminated.int("signal") > 0 {
            page.line(3, format!("Signal:\t{}", terminated.int("signal")));
        }
        page.line(3, format!("Started:\t{}", moment(terminated.text("startedAt"))));
        page.line(3, format!("Finished:\t{}", moment(terminated.text("finishedAt"))));
    } else {
        page.line(2, format!("{title}:\tWaiting"));
        let reason = state.at("waiting").text("reason");
        if !reason.is_empty() {
            page.line(3, format!("Reason:\t{reason}"));
        }
    }
}

fn resources(page: &mut Page, resources: &Value) {
    for (title, name) in [("Limits", "limits"), ("Requests", "requests")] {
        let mut amounts: Vec<(&str, &str)> = super::super::pairs(resources.at(name));
        amounts.sort();
        if !amounts.is_empty() {
            page.line(2, format!("{title}:"));
            amounts.iter().for_each(|(name, amount)| page.line(3, format!("{name}:\t{amount}")));
        }
    }
}

fn probe(probe: &Value) -> String {
    let (get, tcp) = (probe.at("httpGet"), probe.at("tcpSocket"));
    let number = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let what = if !probe.at("exec").is_null() {
        format!("exec [{}]", probe.at("exec").texts("command").join(" "))
    } else if !get.is_null() {
        let (scheme, host, path) = (get.text("scheme").to_lowercase(), get.text("host"), get.text("path"));
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        format!("http-get {scheme}://{host}:{}{path}", number(get.at("port")))
    } else if !tcp.is_null() {
        format!("tcp-socket {}:{}", tcp.text("host"), number(tcp.at("port")))
    } else if !probe.at("grpc").is_null() {
        format!("grpc <pod>:{} {}", probe.at("grpc").int("port"), probe.at("grpc").text("service"))
    } else {
        "unknown".to_owned()
    };
    format!(
        "{what} delay={}s timeout={}s period={}s #success={} #failure={}",
        probe.int("initialDelaySeconds"),
        probe.int("timeoutSeconds"),
        probe.int("periodSeconds"),
        probe.int("successThreshold"),
        probe.int("failureThreshold")
    )
}

fn environment(page: &mut Page, container: &Value, pod: &Value) {
    if !container.list("envFrom").is_empty() {
        page.line(2, "Environment Variables from:");
        for source in container.list("envFrom") {
            let (kind, from) = match source.at("configMapRef").is_null() {
                true => ("Secret", source.at("secretRef")),
                false => ("ConfigMap", source.at("configMapRef")),
            };
            let prefix = match source.text("prefix") {
                "" => String::new(),
                prefix => format!(" with prefix '{prefix}'"),
            };
            page.line(3, format!("{}\t{kind}{prefix}\tOptional: {}", from.text("name"), from.flag("optional")));
        }
    }
    let variables = container.list("env");
    page.line(2, format!("Environment:{}", if variables.is_empty() { "\t<none>" } else { "" }));
    for variable in variables {
        page.line(3, format!("{}:\t{}", variable.text("name"), value(variable, pod).replace('\n', "\n      \t")));
    }
}

/// What a variable is, or where it comes from.
fn value(variable: &Value, pod: &Value) -> String {
    let from = variable.at("valueFrom");
    let (secret, map, field) = (from.at("secretKeyRef"), from.at("configMapKeyRef"), from.at("fieldRef"));
    if !secret.is_null() {
        let (key, name) = (secret.text("key"), secret.text("name"));
        return format!("<set to the key '{key}' in secret '{name}'>\tOptional: {}", secret.flag("optional"));
    }
    if !map.is_null() {
        let (key, name) = (map.text("key"), map.text("name"));
        return format!("<set to the key '{key}' of config map '{name}'>\tOptional: {}", map.flag("optional"));
    }
    if !field.is_null() {
        let path = field.text("fieldPath");
        let value = path.split('.').fold(pod, |value, name| value.at(name)).as_str().unwrap_or_default();
        return format!("{value} ({}:{path})", field.text("apiVersion"));
    }
    if !from.at("resourceFieldRef").is_null() {
        return format!("({})", from.at("resourceFieldRef").text("resource"));
    }
    variable.text("value").to_owned()
}

fn mounts(page: &mut Page, container: &Value) {
    let mut mounts: Vec<&Value> = container.list("volumeMounts").iter().collect();
    mounts.sort_by_key(|mount| mount.text("mountPath").to_owned());
    page.line(2, format!("Mounts:{}", if mounts.is_empty() { "\t<none>" } else { "" }));
    for mount in mounts {
        let way = if mount.flag("readOnly") { "ro" } else { "rw" };
        let path = match mount.text("subPath") {
            "" => String::new(),
            path => format!(",path={path:?}"),
        };
        page.line(3, format!("{} from {} ({way}{path})", mount.text("mountPath"), mount.text("name")));
    }
}
