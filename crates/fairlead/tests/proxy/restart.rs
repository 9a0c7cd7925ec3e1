//! What lives on when the proxy is killed and started again: rules, connections, and where clients stay.

use std::collections::BTreeMap;

use super::lab::{CLIENTS, ENDPOINTS, Lab, STICKY, WEB, alive, lab, name};

/// Where each client stays.
fn places(lab: &Lab) -> BTreeMap<u8, u8> {
    let place = |client: u8| {
        let found = lab.who(STICKY, client);
        found.unwrap_or_else(|error| panic!("client {client}: {error}\n{}\n{}", lab.ruleset(), lab.log()))
    };
    CLIENTS.iter().map(|client| (*client, place(*client))).collect()
}

fn check(test: &str, mode: &str) {
    let Some(lab) = lab(test) else { return };
    let running = lab.start(mode, &[]);
    let mut held = lab.connect(WEB, CLIENTS[0]).unwrap();
    name(&mut held).unwrap();
    let stayed = places(&lab);
    let rules = lab.ruleset();
    running.kill();

    assert_eq!(lab.ruleset(), rules, "rules stay while nobody is there");
    assert!(alive(&mut held), "a connection lives on without the proxy");
    assert!(lab.who(WEB, CLIENTS[1]).is_ok(), "new connections go on without the proxy");
    assert_eq!(places(&lab), stayed, "clients stay without the proxy");

    let running = lab.start(mode, &[]);
    assert!(alive(&mut held), "a connection lives on over the start");
    assert_eq!(places(&lab), stayed, "clients stay over a restart");
    running.stop();
    assert!(alive(&mut held), "a connection lives on after the end");

    // What changed while nobody was there is found at the start; who leaves takes its clients along, and no others.
    let gone = ENDPOINTS[0];
    lab.write_objects(&ENDPOINTS[1..3]);
    let running = lab.start(mode, &[]);
    running.wait("the endpoint that left is not used", || {
        (0..20).all(|at| lab.who(WEB, CLIENTS[at % CLIENTS.len()]).is_ok_and(|endpoint| endpoint != gone))
    });
    for (client, endpoint) in places(&lab) {
        let before = stayed[&client];
        assert!(
            if before == gone { endpoint != gone } else { endpoint == before },
            "client {client}: {before}, then {endpoint}"
        );
    }
}

#[test]
fn mode_nftables_survives_a_kill() {
    check("mode_nftables_survives_a_kill", "nftables");
}

#[test]
fn mode_iptables_survives_a_kill() {
    check("mode_iptables_survives_a_kill", "iptables");
}

#[test]
fn mode_userspace_serves_again_after_a_kill() {
    let Some(lab) = lab("mode_userspace_serves_again_after_a_kill") else { return };
    for _ in 0..3 {
        // The start waits until the Service answers.
        lab.start("userspace", &[]).kill();
        assert!(lab.who(WEB, CLIENTS[0]).is_err(), "nobody carries bytes while the proxy is away");
    }
}
