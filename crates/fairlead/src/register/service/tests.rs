use super::*;

/// Where the ports of a Service with this spec lead, as `name:number/protocol`.
fn lead(spec: Value, wanted: &[&str]) -> Result<Vec<String>, String> {
    let service = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
    let service: Service = serde_json::from_value(service).expect("a Service");
    let wanted: Vec<Port> = wanted.iter().map(|text| text.parse().expect("a port")).collect();
    let ports = ports(&service, &wanted).map_err(|error| error.to_string())?;
    let show = |port: EndpointPort| {
        let (name, number) = (port.name.unwrap_or_default(), port.port.unwrap_or_default());
        format!("{name}:{number}/{}", port.protocol.unwrap_or_default())
    };
    Ok(ports.into_iter().map(show).collect())
}

#[track_caller]
fn check(spec: Value, wanted: &[&str], expect: &[&str]) {
    assert_eq!(lead(spec, wanted), Ok(expect.iter().map(|&port| port.to_owned()).collect()));
}

#[track_caller]
fn refused(spec: Value, wanted: &[&str], expect: &str) {
    assert_eq!(lead(spec, wanted), Err(expect.to_owned()));
}

#[test]
fn ports_of_the_endpoint_serve_ports_of_the_service() {
    let one = json!({"ports": [{"port": 80, "targetPort": 8080}]});
    check(one.clone(), &[], &[":8080/TCP"]);
    check(one.clone(), &["9000"], &[":9000/TCP"]);
    refused(one, &["http=9000"], "--port: none of the Service's ports is meant by http=9000; it has 80");
    let two = json!({"ports": [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "admin", "port": 81},
        {"name": "dns", "port": 53, "protocol": "UDP"}]});
    check(two.clone(), &[], &["http:8080/TCP", "admin:81/TCP", "dns:53/UDP"]);
    check(two.clone(), &["admin=9000"], &["admin:9000/TCP"]);
    check(two.clone(), &["8080"], &["http:8080/TCP"]);
    check(two.clone(), &["5353/UDP"], &["dns:5353/UDP"]);
    let known = "it has http (80), admin (81), dns (53/UDP)";
    refused(two.clone(), &["9000"], &format!("--port: none of the Service's ports is meant by 9000; {known}"));
    refused(two, &["dns=53"], &format!("--port: none of the Service's ports is meant by dns=53; {known}"));
}

#[test]
fn services_that_have_no_endpoints_of_ones_own_are_refused() {
    let selects =
        "the Service shop/web selects Pods (app=x); an endpoint of your own needs a Service without a selector";
    refused(json!({"selector": {"app": "x"}, "ports": [{"port": 80}]}), &["80"], selects);
    let outside = "the Service shop/web is of type ExternalName and has no endpoints";
    refused(json!({"type": "ExternalName"}), &["80"], outside);
    let named = "--port: the Service's port 80 leads to \"web\"; say which number that is";
    refused(json!({"ports": [{"port": 80, "targetPort": "web"}]}), &[], named);
}
