use serde_json::json;

use super::*;

fn named(pod_name: &str, spec: Value) -> Result<(String, String, String), String> {
    let pod = json!({"metadata": {"name": pod_name, "namespace": "shop"}, "spec": spec});
    let made = name(&pod, "cluster.local").map_err(|mistake| mistake.to_string())?;
    Ok((made.hostname, made.domain, made.kernel))
}

#[track_caller]
fn check(pod_name: &str, spec: Value, expect: (&str, &str, &str)) {
    let (hostname, domain, kernel) = expect;
    assert_eq!(named(pod_name, spec), Ok((hostname.to_owned(), domain.to_owned(), kernel.to_owned())));
}

#[track_caller]
fn refused(spec: Value, expect: &str) {
    let told = named("web", spec).expect_err("refused");
    assert!(told.starts_with(expect), "{told}");
}

#[test]
fn a_pod_is_called_what_it_asks_for_or_by_its_name() {
    check("web", json!({}), ("web", "", "web"));
    check("web", json!({"hostname": "w"}), ("w", "", "w"));
    let domain = "nginx.shop.svc.cluster.local";
    check("web", json!({"subdomain": "nginx"}), ("web", domain, "web"));
    let whole = format!("web.{domain}");
    check("web", json!({"subdomain": "nginx", "setHostnameAsFQDN": true}), ("web", domain, &whole));
    check("web", json!({"setHostnameAsFQDN": true}), ("web", "", "web"));
    check("web", json!({"hostnameOverride": "a.example", "subdomain": "x"}), ("a.example", "", "a.example"));
}

#[test]
fn a_long_name_is_cut_and_does_not_end_in_punctuation() {
    let long = format!("{}-.{}", "a".repeat(61), "b".repeat(20));
    check(&long, json!({}), (&"a".repeat(61), "", &"a".repeat(61)));
    let whole = "c".repeat(63);
    check(&whole, json!({}), (&whole, "", &whole));
}

#[test]
fn names_that_cannot_be_keep_the_pod_from_starting() {
    refused(json!({"hostname": "A_b"}), "pod Hostname \"A_b\" is not a valid DNS label: a lowercase RFC 1123 label");
    refused(json!({"subdomain": "a.b"}), "pod Subdomain \"a.b\" is not a valid DNS label: ");
    refused(json!({"hostnameOverride": ""}), "pod HostnameOverride \"\" is not a valid DNS subdomain: ");
    let long = "s".repeat(40);
    let whole = format!("web.{long}.shop.svc.cluster.local");
    let expect = format!(
        "failed to construct FQDN from pod hostname and cluster domain, FQDN {whole} is too long (64 characters is the \
         max, {} characters requested)",
        whole.len()
    );
    refused(json!({"subdomain": long, "setHostnameAsFQDN": true}), &expect);
}

#[test]
fn exactly_64_characters_still_fit() {
    let subdomain = "s".repeat(64 - "web..shop.svc.cluster.local".len());
    let made = named("web", json!({"subdomain": subdomain, "setHostnameAsFQDN": true})).expect("it fits");
    assert_eq!(made.2.len(), 64);
}

#[test]
fn the_hosts_file_names_the_pod_under_each_address() {
    let pod = json!({"spec": {"hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a", "b.example"]}]}});
    let ips = ["10.1.0.2".to_owned(), "fd00::2".to_owned()];
    let name = Name { hostname: "web".into(), domain: "nginx.shop.svc.cluster.local".into(), kernel: "web".into() };
    let text = render(&pod, &name, Network::Own(&ips));
    let expect = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n\
        fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n\
        10.1.0.2\tweb.nginx.shop.svc.cluster.local\tweb\nfd00::2\tweb.nginx.shop.svc.cluster.local\tweb\n\n\
        # Entries added by HostAliases.\n192.0.2.1\ta\tb.example\n";
    assert_eq!(text, expect);
    let plain = render(&Value::Null, &Name { domain: String::new(), ..name }, Network::Own(&ips[..1]));
    assert!(plain.ends_with("ip6-allrouters\n10.1.0.2\tweb\n"), "{plain}");
}

#[test]
fn in_the_nodes_network_the_nodes_hosts_file_is_kept() {
    let pod = json!({"spec": {"hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a"]}]}});
    let text = render(&pod, &Name::default(), Network::Node("127.0.0.1 localhost\n"));
    let expect = "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n\n\
        # Entries added by HostAliases.\n192.0.2.1\ta\n";
    assert_eq!(text, expect);
}
