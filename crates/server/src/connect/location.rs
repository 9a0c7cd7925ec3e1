//! Where at a Node the streams of a Pod are, and what is wrong with a request for them, in the reference server's words. Pure.

use fairlead_api::value::Value;
use fairlead_api::{Failure, Look};

use super::{FieldError, FieldErrors, Path, Subject};
use crate::options::Query;

/// The container that is meant.
pub(super) fn container<'a>(asked: &'a str, pod: &'a Value) -> Result<&'a str, Failure> {
    let (name, spec) = (pod.at("metadata").text("name"), pod.at("spec"));
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let all: Vec<&str> =
        lists.iter().flat_map(|list| spec.list(list)).map(|container| container.text("name")).collect();
    if !asked.is_empty() {
        let known = all.contains(&asked);
        let why = || Failure::bad_request(format!("container {asked} is not valid for pod {name}"));
        return known.then_some(asked).ok_or_else(why);
    }
    match spec.list("containers") {
        [only] => Ok(only.text("name")),
        [] => Err(Failure::bad_request(format!("a container name must be specified for pod {name}"))),
        _ => {
            let choice = all.join(" ");
            Err(Failure::bad_request(format!(
                "a container name must be specified for pod {name}, choose one of: [{choice}]"
            )))
        }
    }
}

/// The query of a log, checked, as a Node takes it.
pub(super) fn log_options(query: &Query, name: &str) -> Result<String, Failure> {
    let (tail, limit) = (query.number("tailLines")?, query.number("limitBytes")?);
    let seconds = query.number("sinceSeconds")?;
    let since = Some(query.text("sinceTime")).filter(|time| !time.is_empty());
    let mut errors = FieldErrors::new();
    let mut refuse =
        |field: &str, value: i64, why: &str| errors.push(FieldError::invalid(&Path::new(field), value, why));
    if let Some(lines) = tail.filter(|lines| *lines < 0) {
        refuse("tailLines", lines, "must be greater than or equal to 0");
    }
    if let Some(bytes) = limit.filter(|bytes| *bytes < 1) {
        refuse("limitBytes", bytes, "must be greater than 0");
    }
    if let (Some(seconds), None) = (seconds.filter(|seconds| *seconds < 1), since) {
        refuse("sinceSeconds", seconds, "must be greater than 0");
    }
    if seconds.is_some() && since.is_some() {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(FieldError::forbidden(&Path::new(""), why));
    }
    if !errors.is_empty() {
        return Err(Failure::invalid(Subject { group: "", kind: "PodLogOptions", name }, &errors));
    }
    let mut options = Pairs::default();
    for switch in ["follow", "previous", "timestamps"] {
        options.add_if(query.flag(switch).unwrap_or_default(), switch, "true");
    }
    for option in ["tailLines", "limitBytes", "sinceSeconds", "sinceTime", "stream"] {
        options.add_if(!query.text(option).is_empty(), option, query.text(option));
    }
    Ok(options.0)
}

/// The path and query of a stream at the Node.
pub(super) fn of_stream(subresource: &str, query: &Query, pod: &Value) -> Result<String, Failure> {
    let metadata = pod.at("metadata");
    let place = format!("{}/{}", metadata.text("namespace"), metadata.text("name"));
    let mut options = Pairs::default();
    if subresource == "portforward" {
        query.all("ports").into_iter().for_each(|ports| options.add_if(!ports.is_empty(), "port", ports));
        return Ok(format!("/portForward/{place}?{}", options.0));
    }
    let container = container(query.text("container"), pod)?;
    for (asked, sent) in [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")] {
        options.add_if(query.flag(asked).unwrap_or_default(), sent, "1");
    }
    query.all("command").into_iter().for_each(|word| options.add_if(true, "command", word));
    Ok(format!("/{subresource}/{place}/{container}?{}", options.0))
}

/// A query in the making.
#[derive(Default)]
struct Pairs(String);

impl Pairs {
    fn add_if(&mut self, wanted: bool, name: &str, value: &str) {
        if !wanted {
            return;
        }
        if !self.0.is_empty() {
            self.0.push('&');
        }
        self.0.push_str(name);
        self.0.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => self.0.push(char::from(byte)),
                _ => self.0.push_str(&format!("%{byte:02X}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_api::value::json;

    fn pod(containers: &[&str]) -> Value {
        let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
        let init = named(if containers.len() > 1 { &["init"] } else { &[] });
        json!({
            "metadata": {"namespace": "ns", "name": "p"},
            "spec": {"containers": named(containers), "initContainers": init},
        })
    }

    #[track_caller]
    fn check(subresource: &str, query: &str, containers: &[&str], want: Result<&str, &str>) {
        let got = of_stream(subresource, &Query::parse(query), &pod(containers)).map_err(|failure| failure.message);
        assert_eq!(got.as_deref().map_err(String::as_str), want, "{query}");
    }

    #[test]
    fn a_stream_is_found_at_the_node() {
        check(
            "exec",
            "command=sh&command=-c&command=a%26+b&stdin=true&stdout=1&tty=false",
            &["c"],
            Ok("/exec/ns/p/c?input=1&output=1&command=sh&command=-c&command=a%26%20b"),
        );
        check("attach", "container=init&stderr=true", &["a", "b"], Ok("/attach/ns/p/init?error=1"));
        check("portforward", "ports=80&ports=81,82", &["a", "b"], Ok("/portForward/ns/p?port=80&port=81%2C82"));
        check("portforward", "", &["a"], Ok("/portForward/ns/p?"));
    }

    #[test]
    fn a_container_must_be_named_where_there_are_several() {
        check("exec", "", &["a", "b"], Err("a container name must be specified for pod p, choose one of: [init a b]"));
        check("exec", "container=x", &["a"], Err("container x is not valid for pod p"));
    }

    #[track_caller]
    fn check_log(query: &str, want: Result<&str, &str>) {
        let got = log_options(&Query::parse(query), "p").map_err(|failure| failure.message);
        assert_eq!(got.as_deref().map_err(String::as_str), want, "{query}");
    }

    #[test]
    fn what_is_asked_of_a_log_must_make_sense() {
        check_log("follow=true&tailLines=10&timestamps=false", Ok("follow=true&tailLines=10"));
        check_log("sinceTime=2026-01-01T00:00:00Z", Ok("sinceTime=2026-01-01T00%3A00%3A00Z"));
        check_log(
            "tailLines=-1",
            Err("PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0"),
        );
        check_log(
            "limitBytes=0",
            Err("PodLogOptions \"p\" is invalid: limitBytes: Invalid value: 0: must be greater than 0"),
        );
        check_log("tailLines=x", Err("strconv.ParseInt: parsing \"x\": invalid syntax"));
        check_log(
            "sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z",
            Err(
                "PodLogOptions \"p\" is invalid: : Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
            ),
        );
    }
}
