//! EndpointSlices and Endpoints in kubectl's layout.

use fairlead_api::Look;
use serde_json::Value;

use super::Page;

/// An Endpoints object.
pub(super) fn describe(page: &mut Page, endpoints: &Value) {
    page.head(endpoints);
    page.line(0, "Subsets:");
    for subset in endpoints.list("subsets") {
        for (title, name) in [("Addresses", "addresses"), ("NotReadyAddresses", "notReadyAddresses")] {
            let addresses: Vec<&str> = subset.list(name).iter().map(|address| address.text("ip")).collect();
            page.line(1, format!("{title}:\t{}", or(&addresses.join(","), "<none>")));
        }
        if !subset.list("ports").is_empty() {
            page.line(1, "Ports:");
            ports(page, 2, subset.list("ports"));
        }
        page.line(0, "");
    }
}

/// An EndpointSlice.
pub(super) fn describe_slice(page: &mut Page, slice: &Value) {
    page.head(slice);
    page.field("AddressType", slice.text("addressType"));
    match slice.list("ports") {
        [] => page.line(0, "Ports: <unset>"),
        list => {
            page.line(0, "Ports:");
            ports(page, 1, list);
        }
    }
    match slice.list("endpoints") {
        [] => page.line(0, "Endpoints: <none>"),
        list => {
            page.line(0, "Endpoints:");
            list.iter().for_each(|endpoint| describe_endpoint(page, endpoint));
        }
    }
}

fn ports(page: &mut Page, level: usize, ports: &[Value]) {
    page.line(level, "Name\tPort\tProtocol");
    page.line(level, "----\t----\t--------");
    for port in ports {
        let number = port.int_opt("port").map_or_else(|| "<unset>".to_owned(), |number| number.to_string());
        page.line(level, format!("{}\t{number}\t{}", or(port.text("name"), "<unset>"), port.text("protocol")));
    }
}

fn describe_endpoint(page: &mut Page, endpoint: &Value) {
    let unset = |name: &str| endpoint.text_opt(name).unwrap_or("<unset>").to_owned();
    page.line(1, format!("- Addresses:\t{}", or(&endpoint.texts("addresses").join(", "), "<none>")));
    page.line(2, "Conditions:");
    let ready = endpoint.at("conditions").flag_opt("ready");
    page.line(3, format!("Ready:\t{}", ready.map_or_else(|| "<unset>".to_owned(), |ready| ready.to_string())));
    page.line(2, format!("Hostname:\t{}", unset("hostname")));
    let target = endpoint.at("targetRef");
    if !target.is_null() {
        page.line(2, format!("TargetRef:\t{}/{}", target.text("kind"), target.text("name")));
    }
    page.line(2, format!("NodeName:\t{}", unset("nodeName")));
    page.line(2, format!("Zone:\t{}", unset("zone")));
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}
