//! A Service: what it asks for, where it is, whom it leads to; and how it does, as only we can tell.

use fairlead_api::{Look, kinds};
use fairlead_cluster::browse::{Form, Query};
use fairlead_cluster::{Cluster, Method, Resource, encode};
use serde_json::Value;

use super::{Page, or_none, selector};

/// So many endpoints of a port are named.
const NAMED: usize = 3;
/// So many endpoints have a line.
const LISTED: usize = 20;

/// The slices of a Service; none if they cannot be read.
pub(super) async fn slices(cluster: &Cluster, service: &Value) -> Vec<Value> {
    let metadata = service.at("metadata");
    let query = Query {
        namespace: metadata.text("namespace").to_owned(),
        labels: format!("kubernetes.io/service-name={}", metadata.text("name")),
        ..Query::default()
    };
    let resource = Resource::of(&kinds::ENDPOINT_SLICE);
    let pages = cluster.look(&resource, &query, Form::Whole).await.unwrap_or_default();
    pages.into_iter().flat_map(|page| super::super::kinds::items(page.body, &resource)).collect()
}

/// In kubectl's layout.
pub(super) fn describe(page: &mut Page, service: &Value, slices: &[Value]) {
    let spec = service.at("spec");
    page.head(service);
    page.field("Selector", selector(spec.at("selector")));
    page.field("Type", spec.text("type"));
    page.field_if("IP Family Policy", spec.text("ipFamilyPolicy"));
    page.field("IP Families", or_none(&spec.texts("ipFamilies").join(",")));
    page.field("IP", spec.text("clusterIP"));
    page.field("IPs", or_none(&spec.texts("clusterIPs").join(",")));
    page.field_if("External IPs", &spec.texts("externalIPs").join(","));
    page.field_if("Desired LoadBalancer IP", spec.text("loadBalancerIP"));
    page.field_if("External Name", spec.text("externalName"));
    let ingress: Vec<String> = service.at("status").at("loadBalancer").list("ingress").iter().map(ingress).collect();
    page.field_if("LoadBalancer Ingress", &ingress.join(", "));
    for port in spec.list("ports") {
        describe_port(page, port, slices);
    }
    page.field("Session Affinity", spec.text("sessionAffinity"));
    page.field_if("External Traffic Policy", spec.text("externalTrafficPolicy"));
    page.field_if("Internal Traffic Policy", spec.text("internalTrafficPolicy"));
    if spec.int("healthCheckNodePort") != 0 {
        page.field("HealthCheck NodePort", spec.int("healthCheckNodePort"));
    }
    page.field_if("LoadBalancer Source Ranges", &spec.texts("loadBalancerSourceRanges").join(","));
    page.field_if("Traffic Distribution", spec.text("trafficDistribution"));
}

fn describe_port(page: &mut Page, port: &Value, slices: &[Value]) {
    let name = Some(port.text("name")).filter(|name| !name.is_empty()).unwrap_or("<unset>");
    let protocol = port.text("protocol");
    let target = port.at("targetPort");
    let target = target.as_str().map_or_else(|| port.int("targetPort").to_string(), str::to_owned);
    page.field("Port", format!("{name}\t{}/{protocol}", port.int("port")));
    page.field("TargetPort", format!("{target}/{protocol}"));
    page.field_if("AppProtocol", port.text("appProtocol"));
    if port.int("nodePort") != 0 {
        page.field("NodePort", format!("{name}\t{}/{protocol}", port.int("nodePort")));
    }
    page.field("Endpoints", ready(slices, port.text("name")));
}

/// The first ready endpoints of a port.
fn ready(slices: &[Value], port: &str) -> String {
    if slices.is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for slice in slices {
        let numbers: Vec<Option<i64>> = match slice.list("ports") {
            // A headless Service may have no ports.
            [] => vec![None],
            ports => ports.iter().filter(|one| one.text("name") == port).map(|one| Some(one.int("port"))).collect(),
        };
        for number in numbers {
            let ready = slice.list("endpoints").iter().filter(|endpoint| is_ready(endpoint));
            all.extend(ready.map(|endpoint| address(endpoint, number)));
        }
    }
    match all.len() {
        0..=NAMED => all.join(","),
        many => format!("{} + {} more...", all[..NAMED].join(","), many - NAMED),
    }
}

fn is_ready(endpoint: &Value) -> bool {
    endpoint.at("conditions").flag_opt("ready").unwrap_or(true)
}

fn address(endpoint: &Value, port: Option<i64>) -> String {
    let address = endpoint.texts("addresses").first().copied().unwrap_or_default().to_owned();
    match port {
        None => address,
        Some(port) if address.contains(':') => format!("[{address}]:{port}"),
        Some(port) => format!("{address}:{port}"),
    }
}

fn ingress(one: &Value) -> String {
    match (one.text("ip"), one.text("ipMode")) {
        ("", _) => one.text("hostname").to_owned(),
        (ip, "") => ip.to_owned(),
        (ip, mode) => format!("{ip} ({mode})"),
    }
}

/// What kubectl does not tell: whether it works, and each endpoint with its state.
pub(super) async fn known(cluster: &Cluster, service: &Value, slices: &[Value]) -> String {
    let mut page = Page::default();
    let metadata = service.at("metadata");
    let (namespace, name) = (metadata.text("namespace"), metadata.text("name"));
    page.line(0, "Fairlead:");
    let path = format!("/fairlead/v1/explain?namespace={}&name={}", encode(namespace), encode(name));
    // A foreign server has no such page.
    if let Ok(report) = cluster.request(Method::GET, &path, None).await {
        page.line(1, format!("Verdict:\t{}: {}", report.text("verdict"), report.text("summary")));
    }
    let endpoints: Vec<String> = slices.iter().flat_map(|slice| slice.list("endpoints")).map(state).collect();
    let ready = slices.iter().flat_map(|slice| slice.list("endpoints")).filter(|endpoint| is_ready(endpoint)).count();
    page.line(1, format!("Ready:\t{ready} of {} endpoints", endpoints.len()));
    page.line(1, format!("More:\tfairlead explain svc/{name} -n {namespace}"));
    if !endpoints.is_empty() {
        page.line(1, "Endpoints:");
    }
    for line in endpoints.iter().take(LISTED) {
        page.line(2, line);
    }
    if endpoints.len() > LISTED {
        page.line(2, format!("and {} more: fairlead get endpointslices -n {namespace}", endpoints.len() - LISTED));
    }
    page.text
}

/// An endpoint with what is said of it.
fn state(endpoint: &Value) -> String {
    let conditions = endpoint.at("conditions");
    let state = match (is_ready(endpoint), conditions.flag("serving"), conditions.flag("terminating")) {
        (true, ..) => "ready",
        (false, true, true) => "terminating, still serving",
        (false, false, true) => "terminating",
        (false, ..) => "not ready",
    };
    let target = endpoint.at("targetRef");
    let target = match target.text("name") {
        "" => "-".to_owned(),
        name => format!("{}/{name}", target.text("kind").to_lowercase()),
    };
    let node = Some(endpoint.text("nodeName")).filter(|node| !node.is_empty()).unwrap_or("-");
    format!("{}\t{target}\t{node}\t{state}", endpoint.texts("addresses").join(","))
}
