//! The recorded answers of CoreDNS, asked of the zone without a socket. What a server would do around the zone is done here
//! in the plainest way: names that are not ours, or that fall through, go to a scripted resolver.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

mod compare;
mod server;
mod text;
mod upstream;

/// Cases whose recorded answer we do not give, with the reason.
const OTHERWISE: &[(&str, &str)] = &[
    ("default/apex/003", TXT),
    ("default/nxdomain/014", TXT),
    ("default/nxdomain/017", TXT),
    ("default/nxdomain/038", TXT),
    ("not-in-service/own-address/003", TXT),
    ("default/apex/009", "the case of a name does not count, for NS as for all others"),
    ("default/malformed-udp/007", "a question without a class is none"),
    ("default/malformed-udp/008", "a question without a type is none"),
    ("default/malformed-udp/014", "two OPT records are an error (RFC 6891, 6.1.1)"),
    ("default/malformed-udp/029", "signatures are not looked at, so one that is malformed is no error"),
    ("default/opcode/001", "NOTIFY is for those who copy zones"),
    ("default/ptr/025", "a slice of no Service has no name; silence would make the client wait"),
];

/// Who takes NXDOMAIN at its word forgets all names below (RFC 8020).
const TXT: &str = "a name that exists is not denied because it has no TXT record";

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/dns/dev")
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn recorded_answers_are_given() {
    let state = read(&vectors().join("state.json"));
    let upstream = upstream::Upstream::new(&read(&vectors().join("upstream.json")));
    let mut servers = BTreeMap::new();
    for path in sorted(&vectors().join("profiles")) {
        let profile = read(&path);
        let name = profile["name"].as_str().unwrap().to_owned();
        servers.insert(name, server::Server::new(&state, &profile, &upstream));
    }
    let (mut passed, mut failed) = (0, Vec::new());
    for path in sorted(&vectors().join("cases")) {
        let group = read(&path);
        let server = &servers[group["profile"].as_str().unwrap()];
        for case in group["cases"].as_array().unwrap() {
            match compare::check(server, case).as_slice() {
                [] => passed += 1,
                differences => failed.push((case.clone(), differences.join("; "))),
            }
        }
    }
    let expected = |case: &Value| OTHERWISE.iter().any(|(id, _)| case["id"] == *id);
    let surprises: Vec<_> = failed.iter().filter(|(case, _)| !expected(case)).collect();
    for (case, differences) in &surprises {
        println!("{} ({}) {}\n    {differences}", case["id"], case["level"], case["q"]);
    }
    println!("{passed} passed, {} otherwise by decision", failed.len() - surprises.len());
    assert!(surprises.is_empty(), "{} cases differ", surprises.len());
    assert_eq!(failed.len(), OTHERWISE.len(), "a case that is listed as different passes");
    assert!(passed > 600);
}
