use crate::value::json;

use super::*;

fn settings(ranges: &[&str]) -> Settings {
    Settings {
        service_ranges: ranges.iter().map(|range| range.parse().expect("a range")).collect(),
        node_ports: 30000..=30020,
        service_topology: false,
    }
}

/// What a write noted, or the message with which it failed.
#[derive(Debug, PartialEq)]
struct Noted {
    taken_ips: usize,
    freed_ips: usize,
    taken_ports: Vec<u16>,
    freed_ports: Vec<u16>,
}

struct Case {
    ranges: &'static [&'static str],
    used_ips: &'static [&'static str],
    used_ports: &'static [u16],
    dry_run: bool,
}

const DUAL: Case =
    Case { ranges: &["10.0.0.0/24", "fd00::/112"], used_ips: &["10.0.0.7"], used_ports: &[30007], dry_run: false };

impl Case {
    fn run(&self, work: impl FnOnce(&mut Ledger<'_>, &Settings) -> Result<(), Failure>) -> Result<Noted, String> {
        let settings = settings(self.ranges);
        let used: Vec<IpAddr> = self.used_ips.iter().map(|ip| ip.parse().expect("an address")).collect();
        let mut node_ports = NodePorts::new(settings.node_ports.clone());
        for port in self.used_ports {
            node_ports.take(*port);
        }
        let taken = |ip: IpAddr| used.contains(&ip);
        let mut random = |_: u64| 0;
        let mut ledger = Ledger::new(&settings.service_ranges, &taken, &mut random, node_ports);
        ledger.dry_run = self.dry_run;
        work(&mut ledger, &settings).map_err(|failure| failure.message)?;
        Ok(Noted {
            taken_ips: ledger.taken_ips.len(),
            freed_ips: ledger.freed_ips.len(),
            taken_ports: ledger.taken_ports,
            freed_ports: ledger.freed_ports,
        })
    }

    fn create(&self, spec: Value) -> (Value, Result<Noted, String>) {
        let mut service = json!({"metadata": {"name": "web", "namespace": "ns"}, "spec": spec});
        let noted = self.run(|ledger, settings| create(&mut service, ledger, settings));
        (service["spec"].take(), noted)
    }

    fn update(&self, spec: Value, old: Value) -> (Value, Result<Noted, String>) {
        let mut service = json!({"metadata": {"name": "web", "namespace": "ns"}, "spec": spec});
        let noted = self.run(|ledger, settings| update(&mut service, &json!({"spec": old}), ledger, settings));
        (service["spec"].take(), noted)
    }
}

fn noted(taken_ips: usize, freed_ips: usize, taken_ports: &[u16], freed_ports: &[u16]) -> Result<Noted, String> {
    Ok(Noted { taken_ips, freed_ips, taken_ports: taken_ports.to_vec(), freed_ports: freed_ports.to_vec() })
}

#[test]
fn a_new_service_gets_an_address_of_the_primary_family() {
    let (spec, got) = DUAL.create(json!({"ports": [{"port": 80}], "type": "ClusterIP"}));
    assert_eq!(got, noted(1, 0, &[], &[]));
    assert_eq!(spec["clusterIPs"], json!(["10.0.0.17"]));
    assert_eq!(spec["clusterIP"], "10.0.0.17");
    assert_eq!(spec["ipFamilies"], json!(["IPv4"]));
}

#[test]
fn fields_stand_in_the_order_of_the_type() {
    let (spec, _) = DUAL.create(json!({"ports": [{"port": 80}], "type": "ClusterIP", "sessionAffinity": "None"}));
    let order: Vec<&crate::value::Key> = spec.as_object().expect("an object").keys().collect();
    assert_eq!(order, ["ports", "clusterIP", "clusterIPs", "type", "sessionAffinity", "ipFamilies", "ipFamilyPolicy"]);
}

#[test]
fn a_full_or_missing_range_is_a_failure_of_the_server() {
    const FULL: Case = Case { ranges: &["10.0.0.0/30"], used_ips: &["10.0.0.1", "10.0.0.2"], ..DUAL };
    let (_, got) = FULL.create(json!({"type": "ClusterIP"}));
    let full = "Internal error occurred: failed to allocate a serviceIP for Service \"web\": range is full";
    assert_eq!(got, Err(full.to_owned()));
    let mut service = json!({"metadata": {"name": "web"}, "spec": {"type": "ClusterIP"}});
    let missing = DUAL.run(|ledger, settings| {
        ledger.ranges = &[];
        create(&mut service, ledger, settings)
    });
    assert!(missing.is_err_and(|text| text.starts_with(full) && text.ends_with("an IP could not be allocated")));
}

#[test]
fn full_node_ports_are_a_failure_of_the_server() {
    let ports: Vec<Value> = (1..=21).map(|port| json!({"port": port})).collect();
    let (_, got) = DUAL.create(json!({"type": "NodePort", "ports": ports}));
    assert_eq!(got, Err("Internal error occurred: failed to allocate a nodePort: range is full".to_owned()));
}

#[test]
fn the_primary_range_may_be_ipv6() {
    const SIX: Case = Case { ranges: &["fd00::/112", "10.0.0.0/24"], ..DUAL };
    let (spec, got) = SIX.create(json!({"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack"}));
    assert_eq!(got, noted(2, 0, &[], &[]));
    assert_eq!(spec["ipFamilies"], json!(["IPv6", "IPv4"]));
}

#[test]
fn a_cluster_of_one_family_prefers_but_does_not_require_two() {
    const FOUR: Case = Case { ranges: &["10.0.0.0/24"], ..DUAL };
    let (spec, got) = FOUR.create(json!({"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack"}));
    assert_eq!((got, &spec["ipFamilies"]), (noted(1, 0, &[], &[]), &json!(["IPv4"])));
    let refused = |spec: Value, why: &str| {
        let (_, got) = FOUR.create(spec);
        assert_eq!(got, Err(format!("Service \"web\" is invalid: {why}")));
    };
    refused(
        json!({"type": "ClusterIP", "ipFamilyPolicy": "RequireDualStack"}),
        "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services",
    );
    refused(
        json!({"type": "ClusterIP", "ipFamilies": ["IPv6"]}),
        "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
    );
    refused(
        json!({"type": "ClusterIP", "clusterIP": "fd00::5"}),
        "spec.clusterIPs[0]: Invalid value: [\"fd00::5\"]: IPv6 is not configured on this cluster",
    );
    let (spec, _) = FOUR.create(json!({"type": "ClusterIP", "clusterIP": "None"}));
    assert_eq!(spec["ipFamilies"], json!(["IPv4", "IPv6"]), "endpoints without selector may be of any family");
}

#[test]
fn a_dry_run_does_not_ask_whether_an_address_is_free() {
    const DRY: Case = Case { dry_run: true, ..DUAL };
    let (_, got) = DRY.create(json!({"type": "ClusterIP", "clusterIP": "10.0.0.7"}));
    assert_eq!(got, noted(0, 0, &[], &[]));
    let (_, got) = DRY.create(json!({"type": "ClusterIP", "clusterIP": "10.1.0.7"}));
    assert!(got.is_err_and(|text| text.ends_with("The range of valid IPs is 10.0.0.0/24")));
    let (_, got) = DRY.create(json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30007}]}));
    assert!(got.is_err_and(|text| text.ends_with("provided port is already allocated")));
}

#[test]
fn ports_of_one_number_share_a_node_port() {
    let ports = json!([{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}, {"port": 80}]);
    let (spec, got) = DUAL.create(json!({"type": "NodePort", "ports": ports}));
    assert_eq!(got, noted(1, 0, &[30016, 30017], &[]));
    assert_eq!(spec["ports"][0]["nodePort"], spec["ports"][1]["nodePort"]);
}

fn stored(kind: &str, ports: Value) -> Value {
    json!({
        "type": kind, "ports": ports, "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
    })
}

#[test]
fn what_the_client_left_out_is_restored() {
    let old = stored("NodePort", json!([{"name": "a", "port": 80, "nodePort": 30007}]));
    let (spec, got) = DUAL.update(json!({"type": "NodePort", "ports": [{"name": "a", "port": 81}]}), old);
    assert_eq!(got, noted(0, 0, &[], &[]));
    assert_eq!((&spec["clusterIPs"], &spec["ports"][0]["nodePort"]), (&json!(["10.0.0.7"]), &json!(30007)));
}

#[test]
fn a_renamed_port_gets_a_new_node_port_and_the_old_one_is_freed() {
    let old = stored("NodePort", json!([{"name": "a", "port": 80, "nodePort": 30007}]));
    let (_, got) = DUAL.update(json!({"type": "NodePort", "ports": [{"name": "b", "port": 80}]}), old);
    assert_eq!(got, noted(0, 0, &[30016], &[30007]));
}

#[test]
fn a_second_family_comes_and_goes_with_the_policy() {
    let old = stored("ClusterIP", json!([]));
    let mut dual = old.clone();
    dual["ipFamilyPolicy"] = "RequireDualStack".into();
    let (dual, got) = DUAL.update(dual, old);
    assert_eq!(got, noted(1, 0, &[], &[]));
    let mut single = dual.clone();
    single["ipFamilyPolicy"] = "SingleStack".into();
    let (single, got) = DUAL.update(single, dual);
    assert_eq!(got, noted(0, 1, &[], &[]));
    assert_eq!(single["clusterIPs"], json!(["10.0.0.7"]));
}

#[test]
fn an_external_name_gives_everything_back() {
    let old = stored("NodePort", json!([{"port": 80, "nodePort": 30007}]));
    let (_, got) = DUAL.update(json!({"type": "ExternalName", "externalName": "x.io"}), old);
    assert_eq!(got, noted(0, 1, &[], &[30007]));
}

#[test]
fn an_external_name_holds_no_node_ports() {
    let old = json!({"type": "ExternalName", "externalName": "x.io", "ports": [{"port": 80, "nodePort": 30007}]});
    let ports = json!([{"port": 80, "nodePort": 30007}]);
    let (_, got) = DUAL.update(json!({"type": "NodePort", "ports": ports}), old.clone());
    assert!(got.is_err_and(|text| text.ends_with("provided port is already allocated")));
    let got = DUAL.run(|ledger, _| {
        delete(&json!({"spec": old}), ledger);
        Ok(())
    });
    assert_eq!(got, noted(0, 0, &[], &[]));
}

#[test]
fn a_deleted_service_gives_everything_back() {
    let mut spec = stored("LoadBalancer", json!([{"port": 80, "nodePort": 30007}, {"port": 81, "nodePort": 30008}]));
    spec["externalTrafficPolicy"] = "Local".into();
    spec["healthCheckNodePort"] = 30009.into();
    let got = DUAL.run(|ledger, _| {
        delete(&json!({"spec": spec}), ledger);
        Ok(())
    });
    assert_eq!(got, noted(0, 1, &[], &[30007, 30008, 30009]));
}

#[test]
fn the_record_of_an_address_names_its_service() {
    let object = ip_address_object("fd00::7".parse().expect("an address"), "ns", "web");
    assert_eq!(object["metadata"]["name"], "fd00::7");
    assert_eq!(object["metadata"]["labels"]["ipaddress.kubernetes.io/ip-family"], "IPv6");
    assert_eq!(object["spec"]["parentRef"], json!({"resource": "services", "namespace": "ns", "name": "web"}));
}
