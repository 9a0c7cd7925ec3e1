//! Mistakes in probes, hooks and restart policies of a container.

use crate::value::Value;

use super::refuse;
use crate::field::{FieldError, FieldErrors};
use crate::look::Look;
use crate::{Path, names};

/// Hooks and probes of a container that stays. `pod` is the spec it stands in.
pub(super) fn validate(container: &Value, pod: &Value, path: &Path, errors: &mut FieldErrors) {
    let hooks = container.at("lifecycle");
    let grace = pod.int("terminationGracePeriodSeconds");
    for hook in ["postStart", "preStop"] {
        if !hooks.at(hook).is_null() {
            validate_handler(hooks.at(hook), LIFECYCLE, grace, &path.child("lifecycle").child(hook), errors);
        }
    }
    validate_stop_signal(hooks, pod.at("os"), &path.child("lifecycle").child("stopSignal"), errors);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let (probe, path) = (container.at(name), path.child(name));
        if probe.is_null() {
            continue;
        }
        validate_probe(probe, grace, &path, errors);
        if name == "readinessProbe" {
            if let Some(grace) = probe.int_opt("terminationGracePeriodSeconds") {
                let detail = "must not be set for readinessProbes";
                errors.push(FieldError::invalid(&path.child("terminationGracePeriodSeconds"), grace, detail));
            }
        } else if probe.int("successThreshold") != 1 {
            let threshold = probe.int("successThreshold");
            errors.push(FieldError::invalid(&path.child("successThreshold"), threshold, "must be 1"));
        }
    }
}

/// Whether an init container stays beside the others.
pub(super) fn stays(container: &Value) -> bool {
    container.text("restartPolicy") == "Always"
}

/// `restartPolicy` and `restartPolicyRules` of a container.
pub(super) fn validate_restart(container: &Value, path: &Path, errors: &mut FieldErrors) {
    let rules = container.list("restartPolicyRules");
    let policy = container.text_opt("restartPolicy");
    match policy {
        None if rules.is_empty() => return,
        None => {
            let detail = "must specify restartPolicy when restart rules are used";
            errors.push(FieldError::required(&path.child("restartPolicy"), detail));
        }
        Some("Always" | "Never" | "OnFailure") => {}
        Some(policy) => {
            let allowed = &["Always", "Never", "OnFailure"];
            errors.push(FieldError::not_supported(&path.child("restartPolicy"), policy, allowed));
        }
    }
    let list = path.child("restartPolicyRules");
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&list, rules.len(), 20));
    }
    for (at, rule) in rules.iter().enumerate() {
        validate_rule(rule, &list.index(at), errors);
    }
}

fn validate_rule(rule: &Value, path: &Path, errors: &mut FieldErrors) {
    let action = rule.text("action");
    if !ACTIONS.contains(&action) {
        errors.push(FieldError::not_supported(&path.child("action"), action, ACTIONS));
    }
    let (codes, path) = (rule.at("exitCodes"), path.child("exitCodes"));
    if codes.is_null() {
        return errors.push(FieldError::required(&path, "must be specified"));
    }
    let operator = codes.text("operator");
    if !["In", "NotIn"].contains(&operator) {
        errors.push(FieldError::not_supported(&path.child("operator"), operator, &["In", "NotIn"]));
    }
    let values = codes.list("values").len();
    if values > 255 {
        errors.push(FieldError::too_many(&path.child("values"), values, 255));
    }
}

const ACTIONS: &[&str] = &["Restart", "RestartAllContainers"];

fn validate_probe(probe: &Value, grace: i64, path: &Path, errors: &mut FieldErrors) {
    validate_handler(probe, PROBE, grace, path, errors);
    for name in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        let number = probe.int(name);
        if number < 0 {
            errors.push(FieldError::invalid(&path.child(name), number, "must be greater than or equal to 0"));
        }
    }
    if let Some(grace) = probe.int_opt("terminationGracePeriodSeconds").filter(|grace| *grace <= 0) {
        let path = path.child("terminationGracePeriodSeconds");
        errors.push(FieldError::invalid(&path, grace, "must be greater than 0"));
    }
}

const PROBE: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];
const LIFECYCLE: &[&str] = &["exec", "httpGet", "tcpSocket", "sleep"];

/// Exactly one of `kinds`.
fn validate_handler(handler: &Value, kinds: &[&str], grace: i64, path: &Path, errors: &mut FieldErrors) {
    let mut given = kinds.iter().filter(|kind| !handler.at(kind).is_null());
    let Some(first) = given.next() else {
        return errors.push(FieldError::required(path, "must specify a handler type"));
    };
    validate_action(first, handler.at(first), grace, &path.child(first), errors);
    for other in given {
        errors.push(FieldError::forbidden(&path.child(other), "may not specify more than 1 handler type"));
    }
}

fn validate_action(kind: &str, action: &Value, grace: i64, path: &Path, errors: &mut FieldErrors) {
    match kind {
        "exec" if action.list("command").is_empty() => errors.push(FieldError::required(&path.child("command"), "")),
        "httpGet" => validate_http_get(action, path, errors),
        "tcpSocket" | "grpc" => validate_port(action.at("port"), &path.child("port"), errors),
        "sleep" if !(0..=grace).contains(&action.int("seconds")) => {
            let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
            errors.push(FieldError::invalid(path, action.int("seconds"), detail));
        }
        _ => {}
    }
}

fn validate_http_get(action: &Value, path: &Path, errors: &mut FieldErrors) {
    if action.text("path").is_empty() {
        errors.push(FieldError::required(&path.child("path"), ""));
    }
    validate_port(action.at("port"), &path.child("port"), errors);
    let scheme = action.text("scheme");
    if !["HTTP", "HTTPS"].contains(&scheme) {
        errors.push(FieldError::not_supported(&path.child("scheme"), scheme, &["HTTP", "HTTPS"]));
    }
    for header in action.list("httpHeaders") {
        let name = header.text("name");
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            let detail = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
            errors.push(FieldError::invalid(&path.child("httpHeaders"), name, detail));
        }
    }
}

/// A port by number or by name.
fn validate_port(port: &Value, path: &Path, errors: &mut FieldErrors) {
    if let Some(name) = port.as_str() {
        return refuse(errors, path, name, names::port_name(name));
    }
    let number = port.as_i64().unwrap_or(0);
    errors.extend(names::port_number(number).into_iter().map(|reason| FieldError::invalid(path, number, reason)));
}

fn validate_stop_signal(hooks: &Value, os: &Value, path: &Path, errors: &mut FieldErrors) {
    let Some(signal) = hooks.text_opt("stopSignal") else { return };
    let allowed: Vec<String> = match os.text("name") {
        "linux" => linux_signals(),
        "windows" => vec!["SIGKILL".to_owned(), "SIGTERM".to_owned()],
        _ if os.is_null() => {
            let detail = "may not be set for containers with empty `spec.os.name`";
            return errors.push(FieldError::forbidden(path, detail));
        }
        _ => return,
    };
    if !allowed.iter().any(|known| known == signal) {
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        errors.push(FieldError::not_supported(path, signal, &allowed));
    }
}

/// In the order messages list them.
fn linux_signals() -> Vec<String> {
    let plain = [
        "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE", "POLL",
        "PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1",
        "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ", "RTMIN", "RTMAX",
    ];
    let mut all: Vec<String> = plain.iter().map(|name| format!("SIG{name}")).collect();
    all.extend((1..=15).map(|n| format!("SIGRTMIN+{n}")));
    all.extend((1..=14).map(|n| format!("SIGRTMAX-{n}")));
    all.sort();
    all
}
