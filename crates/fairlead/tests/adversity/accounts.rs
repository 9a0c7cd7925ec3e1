//! Do the books balance? Every Service has exactly the IPAddress objects and node ports it names, none is had twice, and
//! nothing is booked that no Service has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use fairlead_api::alloc::NodePorts;
use fairlead_testkit::https::Client;
use serde_json::Value;

/// Objects by `NAMESPACE/NAME`.
pub(crate) type Objects = BTreeMap<String, Value>;

/// What a list holds, and its revision.
pub(crate) fn list(client: &Client, path: &str) -> (Objects, u64) {
    let answer = client.get(path).expect("the server answers");
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    read_list(&answer.body)
}

/// As [`list`], from the body of an answer.
pub(crate) fn read_list(body: &str) -> (Objects, u64) {
    let list: Value = serde_json::from_str(body).expect("JSON");
    let items = list["items"].as_array().expect("a list has items").iter();
    (items.map(|object| (name(object), plain(object))).collect(), revision(&list))
}

/// An object as a list shows it: the list says for all what they are.
pub(crate) fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove("kind");
        fields.shift_remove("apiVersion");
    }
    object
}

/// `NAMESPACE/NAME` of an object.
pub(crate) fn name(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!("{}/{}", metadata["namespace"].as_str().unwrap_or_default(), metadata["name"].as_str().unwrap_or_default())
}

/// The revision of an object or a list.
pub(crate) fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no revision in {object}"))
}

/// Checks addresses through the API and node ports against the map in the store.
pub(crate) fn balance(client: &Client, map: &Value) {
    let (services, _) = list(client, "/api/v1/services");
    let (addresses, _) = list(client, "/apis/networking.k8s.io/v1/ipaddresses");
    check(&services, &addresses, map);
}

/// As [`balance`], of objects that were read before.
pub(crate) fn check(services: &Objects, addresses: &Objects, map: &Value) {
    same(
        &booked_addresses(addresses).into_iter().collect(),
        &addresses_of(services).into_iter().collect(),
        "IPAddress",
    );
    let range = 30000..=32767;
    let booked = match map {
        Value::Null => NodePorts::new(range),
        map => NodePorts::read(&map.clone().into(), range).expect("a map of node ports"),
    };
    same(&booked.in_use().collect(), &ports_of(services), "node port");
}

fn same<T: Ord + Debug>(booked: &BTreeSet<T>, had: &BTreeSet<T>, what: &str) {
    let (leaked, lost): (Vec<_>, Vec<_>) = (booked.difference(had).collect(), had.difference(booked).collect());
    assert!(leaked.is_empty() && lost.is_empty(), "{what} booked for nobody: {leaked:?}; had and not booked: {lost:?}");
}

/// The Service that has each address.
fn addresses_of(services: &Objects) -> BTreeMap<String, String> {
    let mut owners = BTreeMap::new();
    for (name, service) in services {
        let ips = service["spec"]["clusterIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for ip in ips.filter(|ip| *ip != "None") {
            let other = owners.insert(ip.to_owned(), name.clone());
            assert_eq!(other, None, "{ip} is given twice, also to {name}");
        }
    }
    owners
}

/// The Service each IPAddress names.
fn booked_addresses(addresses: &Objects) -> BTreeMap<String, String> {
    let owner = |object: &Value| {
        let parent = &object["spec"]["parentRef"];
        let text = |field: &str| parent[field].as_str().unwrap_or_default().to_owned();
        assert_eq!(text("resource"), "services", "{object}");
        format!("{}/{}", text("namespace"), text("name"))
    };
    addresses.iter().map(|(name, object)| (name.trim_start_matches('/').to_owned(), owner(object))).collect()
}

fn ports_of(services: &Objects) -> BTreeSet<u16> {
    let mut all = BTreeSet::new();
    for (name, service) in services {
        let spec = &service["spec"];
        let ports = spec["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
        // One port may serve two protocols of one Service.
        let own: BTreeSet<u16> = ports.chain([&spec["healthCheckNodePort"]]).filter_map(number).collect();
        for port in own {
            assert!(all.insert(port), "node port {port} is given twice, also to {name}");
        }
    }
    all
}

fn number(value: &Value) -> Option<u16> {
    value.as_u64().filter(|number| *number != 0).and_then(|number| u16::try_from(number).ok())
}
