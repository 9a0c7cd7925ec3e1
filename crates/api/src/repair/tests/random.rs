//! Whatever Services the allocator has served, there is nothing to repair; whatever is taken away from it, one pass mends it.

use std::collections::HashSet;
use std::net::IpAddr;

use crate::{Value, json};
use ipnet::IpNet;
use proptest::prelude::*;

use crate::alloc::{self, Ledger, NodePorts, ip_address_object};
use crate::repair::{Address, Findings, HandMade, Mend, PortMap, Seen, Service, World, examine};
use crate::{Look, Settings, kinds};

const RANGE: std::ops::RangeInclusive<u16> = 30000..=30499;

/// A store as a server would keep it.
struct Store {
    services: Vec<Value>,
    taken: HashSet<IpAddr>,
    addresses: Vec<Value>,
    ports: NodePorts,
    settings: Settings,
}

impl Store {
    fn new() -> Store {
        let ranges = ["10.0.0.0/22", "fd00::/112"].map(|text| text.parse().expect("a range"));
        let settings = Settings { service_ranges: ranges.to_vec(), node_ports: RANGE, service_topology: false };
        let (services, taken, addresses) = Default::default();
        Store { services, taken, addresses, ports: NodePorts::new(RANGE), settings }
    }

    /// Creates a Service as the server does, or deletes one.
    fn act(&mut self, (what, seed): (u8, u64)) {
        if what == 0 && !self.services.is_empty() {
            let service = self.services.remove(seed as usize % self.services.len());
            return self.change(seed, |ledger, _| alloc::delete(&service, ledger));
        }
        let name = format!("s{}", self.services.len() as u64 * 1000 + seed % 1000);
        let mut service =
            json!({"metadata": {"namespace": "n", "name": name, "resourceVersion": "1"}, "spec": wish(what)});
        (kinds::SERVICE.rules.default)(&mut service, &self.settings);
        self.change(seed, |ledger, settings| alloc::create(&mut service, ledger, settings).expect("room"));
        for ip in service.at("spec").texts("clusterIPs").into_iter().filter_map(crate::ip::parse) {
            let mut address = ip_address_object(ip, "n", &name);
            address["metadata"]["resourceVersion"] = json!("1");
            self.addresses.push(address);
        }
        self.services.push(service);
    }

    fn change(&mut self, mut seed: u64, act: impl FnOnce(&mut Ledger<'_>, &Settings)) {
        let ranges: Vec<IpNet> = self.settings.service_ranges.clone();
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        let taken = |ip: IpAddr| self.taken.contains(&ip);
        let mut ledger = Ledger::new(&ranges, &taken, &mut random, self.ports.clone());
        act(&mut ledger, &self.settings);
        let (got, freed) = (ledger.taken_ips.clone(), ledger.freed_ips.clone());
        self.ports = ledger.settle();
        self.taken.extend(got);
        for ip in freed {
            self.taken.remove(&ip);
            self.addresses.retain(|address| address.at("metadata").text("name") != crate::ip::canonical(ip));
        }
    }

    fn examine(&self) -> Findings {
        let bytes = |values: &[Value]| -> Vec<Vec<u8>> { values.iter().map(|v| v.to_string().into_bytes()).collect() };
        let (services, addresses) = (bytes(&self.services), bytes(&self.addresses));
        let endpoints: Vec<HandMade<'_>> = Vec::new();
        let world = World {
            services: services.iter().map(|json| Service::read(json).expect("a Service")).collect(),
            addresses: addresses.iter().map(|json| Address::read(json).expect("an IPAddress")).collect(),
            ranges: self.settings.service_ranges.clone(),
            ports: PortMap::Read(self.ports.clone()),
            endpoints,
            incomplete: false,
        };
        examine(&world, &RANGE, &Seen::default(), 0)
    }

    fn mend(&mut self, findings: &Findings) {
        for finding in &findings.list {
            match &finding.mend {
                Mend::Create(ip, owner) => {
                    self.addresses.push(ip_address_object(*ip, &owner.namespace, &owner.name));
                }
                Mend::Point(ip, _, owner) => {
                    let name = crate::ip::canonical(*ip);
                    self.addresses.retain(|address| address.at("metadata").text("name") != name);
                    self.addresses.push(ip_address_object(*ip, &owner.namespace, &owner.name));
                }
                Mend::SetPort(port) => assert!(self.ports.take(*port)),
                other => panic!("nothing else was damaged: {other:?}"),
            }
        }
    }
}

fn wish(what: u8) -> Value {
    let ports =
        json!([{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}, {"name": "c", "port": 53}]);
    match what {
        1 => json!({"ports": ports}),
        2 => json!({"ports": ports, "ipFamilyPolicy": "RequireDualStack"}),
        3 => json!({"type": "NodePort", "ports": ports}),
        4 => json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": ports}),
        5 => json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": ports}),
        6 => json!({"clusterIP": "None", "ports": ports}),
        _ => json!({"type": "ExternalName", "externalName": "a.example", "ports": ports}),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_allocator_leaves_nothing_to_repair(acts in prop::collection::vec((0u8..8, any::<u64>()), 1..60)) {
        let mut store = Store::new();
        acts.into_iter().for_each(|act| store.act(act));
        let findings = store.examine();
        prop_assert!(findings.list.is_empty(), "{:?}", findings.list);
        prop_assert!(findings.seen.is_empty(), "{:?}", findings.seen);
    }

    #[test]
    fn one_pass_mends_what_was_lost(
        acts in prop::collection::vec((1u8..8, any::<u64>()), 1..40),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 1..10),
    ) {
        let mut store = Store::new();
        acts.into_iter().for_each(|act| store.act(act));
        for at in &lost {
            if !store.addresses.is_empty() {
                store.addresses.swap_remove(at.index(store.addresses.len()));
            }
            let used: Vec<u16> = store.ports.in_use().collect();
            if !used.is_empty() {
                store.ports.release(used[at.index(used.len())]);
            }
            if !store.addresses.is_empty() {
                let turned = at.index(store.addresses.len());
                store.addresses[turned]["spec"]["parentRef"]["name"] = json!("nobody");
            }
        }
        let findings = store.examine();
        store.mend(&findings);
        prop_assert!(store.examine().list.is_empty());
    }
}
