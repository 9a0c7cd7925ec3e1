//! A Pod's probe as it is written in its manifest.

use std::time::Duration;

use serde_json::Value;

use crate::{Check, Http, Schedule, Scheme};

#[cfg(test)]
mod tests;

/// A probe of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// What to do.
    pub handler: Handler,
    /// When, and what to make of it.
    pub schedule: Schedule,
}

/// What a probe does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handler {
    /// A look over the network.
    Look(Check),
    /// A command in the container, which is the caller's matter.
    Exec(Vec<String>),
}

/// Why a probe cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A port that is no number and no port's name.
    #[error("couldn't find port: {0:?} in container")]
    NoSuchPort(String),
    /// A port that cannot be.
    #[error("invalid port number: {0}")]
    Port(i64),
    /// It does not say what to do.
    #[error("missing probe handler")]
    NoHandler,
}

impl Spec {
    /// Reads `readinessProbe`, `livenessProbe` or `startupProbe` of a container whose Pod has this address.
    pub fn read(probe: &Value, container: &Value, pod_ip: &str) -> Result<Spec, Invalid> {
        let number = |name: &str, usual: u32| {
            let said = probe.get(name).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
            said.filter(|number| *number > 0).unwrap_or(usual)
        };
        let seconds = |name: &str, usual: u32| Duration::from_secs(u64::from(number(name, usual)));
        let schedule = Schedule {
            initial_delay: seconds("initialDelaySeconds", 0),
            period: seconds("periodSeconds", 10),
            timeout: seconds("timeoutSeconds", 1),
            success_threshold: number("successThreshold", 1),
            failure_threshold: number("failureThreshold", 3),
        };
        Ok(Spec { handler: Handler::read(probe, container, pod_ip)?, schedule })
    }
}

impl Handler {
    /// Reads what a probe or a lifecycle hook does.
    pub fn read(handler: &Value, container: &Value, pod_ip: &str) -> Result<Handler, Invalid> {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let host =
            |value: &Value| Some(text(value, "host")).filter(|host| !host.is_empty()).unwrap_or(pod_ip.to_owned());
        if let Some(exec) = handler.get("exec").filter(|exec| exec.is_object()) {
            let words = exec.get("command").and_then(Value::as_array).into_iter().flatten();
            return Ok(Handler::Exec(words.filter_map(Value::as_str).map(str::to_owned).collect()));
        }
        if let Some(get) = handler.get("httpGet").filter(|get| get.is_object()) {
            let https = text(get, "scheme").eq_ignore_ascii_case("https");
            let headers = get.get("httpHeaders").and_then(Value::as_array).into_iter().flatten();
            return Ok(Handler::Look(Check::Http(Http {
                scheme: if https { Scheme::Https } else { Scheme::Http },
                host: host(get),
                port: port(get, container)?,
                path: text(get, "path"),
                headers: headers.map(|header| (text(header, "name"), text(header, "value"))).collect(),
            })));
        }
        if let Some(socket) = handler.get("tcpSocket").filter(|socket| socket.is_object()) {
            return Ok(Handler::Look(Check::Tcp { host: host(socket), port: port(socket, container)? }));
        }
        if let Some(grpc) = handler.get("grpc").filter(|grpc| grpc.is_object()) {
            let (host, service) = (pod_ip.to_owned(), text(grpc, "service"));
            return Ok(Handler::Look(Check::Grpc { host, port: port(grpc, container)?, service }));
        }
        Err(Invalid::NoHandler)
    }
}

/// A number, a number as text, or the name of a port of the container.
fn port(from: &Value, container: &Value) -> Result<u16, Invalid> {
    let number = match from.get("port") {
        Some(Value::String(name)) => match named(container, name) {
            Some(port) => port,
            None => name.parse().map_err(|_| Invalid::NoSuchPort(name.clone()))?,
        },
        Some(port) => port.as_i64().unwrap_or_default(),
        None => 0,
    };
    u16::try_from(number).ok().filter(|port| *port > 0).ok_or(Invalid::Port(number))
}

fn named(container: &Value, name: &str) -> Option<i64> {
    let ports = container.get("ports").and_then(Value::as_array)?;
    let port = ports.iter().find(|port| port.get("name").and_then(Value::as_str) == Some(name))?;
    port.get("containerPort").and_then(Value::as_i64)
}
