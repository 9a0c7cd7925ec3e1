//! What was counted, from the server's page or from a proxy's metrics.

use std::time::Instant;

use fairlead_api::Look;
use serde_json::Value;

use super::rates::{Counted, Of, Sample};

/// The server's `/fairlead/v1/traffic`.
pub(super) fn traffic(answer: &Value) -> Sample {
    let mut sample = Sample::new(Instant::now());
    for service in answer.list("services") {
        let of = |endpoint: Option<String>| Of {
            namespace: service.text("namespace").to_owned(),
            service: service.text("name").to_owned(),
            port: service.text("port").to_owned(),
            endpoint,
        };
        sample.put(of(None), counted(service));
        for endpoint in service.list("endpoints") {
            let at = format!("{}:{}", bracketed(endpoint.text("address")), endpoint.at("port"));
            sample.put(of(Some(at)), counted(endpoint));
        }
    }
    sample
}

fn counted(value: &Value) -> Counted {
    let number = |name: &str| value.at(name).as_u64();
    Counted { connections: number("connections").unwrap_or(0), sent: number("bytesIn"), received: number("bytesOut") }
}

fn bracketed(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

const SERVICE: &str = "fairlead_proxy_service_";
const ENDPOINT: &str = "fairlead_proxy_endpoint_";

/// A proxy's `/metrics`. It tells bytes of both ways in one number, which is taken for what goes to endpoints.
pub(super) fn metrics(text: &str) -> Sample {
    let mut sample = Sample::new(Instant::now());
    for line in text.lines() {
        let Some(counter) = counter(line) else { continue };
        let entry = sample.entry(counter.of);
        match counter.unit {
            "connections_total" => entry.connections = counter.count,
            "bytes_total" => entry.sent = Some(counter.count),
            _ => {}
        }
    }
    sample
}

struct Counter<'a> {
    unit: &'a str,
    of: Of,
    count: u64,
}

/// A line such as `fairlead_proxy_service_bytes_total{namespace="a",service="b",port="c"} 12`.
fn counter(line: &str) -> Option<Counter<'_>> {
    let rest = line.strip_prefix(SERVICE).or_else(|| line.strip_prefix(ENDPOINT))?;
    let (unit, rest) = rest.split_once('{')?;
    let (labels, count) = rest.rsplit_once("} ")?;
    let label = |name: &str| {
        // Values are names of objects, ports and addresses: no quotes or commas are in them.
        let found = labels.split(',').find_map(|label| label.strip_prefix(name)?.strip_prefix("=\""))?;
        Some(found.trim_end_matches('"').to_owned())
    };
    let of = Of {
        namespace: label("namespace")?,
        service: label("service")?,
        port: label("port")?,
        endpoint: if line.starts_with(ENDPOINT) { Some(label("endpoint")?) } else { None },
    };
    Some(Counter { unit, of, count: count.trim().parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(endpoint: Option<&str>) -> Of {
        let endpoint = endpoint.map(str::to_owned);
        Of { namespace: "default".into(), service: "web".into(), port: "http".into(), endpoint }
    }

    #[test]
    fn both_sources_tell_the_same() {
        let page = json!({"services": [{"namespace": "default", "name": "web", "port": "http", "protocol": "TCP",
            "connections": 3, "bytesIn": 120, "bytesOut": 400,
            "endpoints": [{"address": "fd00::1", "port": 80, "connections": 3, "bytesIn": null, "bytesOut": null}]}]});
        let sample = traffic(&page);
        let whole = Counted { connections: 3, sent: Some(120), received: Some(400) };
        assert_eq!(sample.get(&of(None)), Some(&whole));
        let part = Counted { connections: 3, sent: None, received: None };
        assert_eq!(sample.get(&of(Some("[fd00::1]:80"))), Some(&part));

        let text = "# TYPE fairlead_proxy_service_bytes counter\n\
            fairlead_proxy_service_connections_total{namespace=\"default\",service=\"web\",port=\"http\"} 3\n\
            fairlead_proxy_service_bytes_total{namespace=\"default\",service=\"web\",port=\"http\"} 120\n\
            fairlead_proxy_endpoint_connections_total{namespace=\"default\",service=\"web\",port=\"http\",endpoint=\"[fd00::1]:80\"} 3\n\
            fairlead_proxy_service_bytes_total{broken\nsomething_else 7\n";
        let sample = metrics(text);
        assert_eq!(sample.get(&of(None)), Some(&Counted { received: None, ..whole }));
        assert_eq!(sample.get(&of(Some("[fd00::1]:80"))), Some(&part));
    }
}
