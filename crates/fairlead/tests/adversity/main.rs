//! What must the program bear? Rivals on the same etcd, an etcd that dies, its own sudden death, and clients that send
//! anything at all.

mod accounts;
mod bad_input;
mod crash;
mod etcd_keys;
mod faults;
mod full_disk;
mod hangs;
mod kubernetes;
mod live_servers;
mod mirror;
mod strangers;
mod two_servers;

use std::time::Duration;

use fairlead_testkit::Server;

/// The flags of every server here: two address families, and a request time that an outage is sure to exceed.
const FLAGS: &[&str] = &[
    "--service-cluster-ip-range",
    "10.0.0.0/16,fd00:10::/108",
    "--service-node-port-range",
    "30000-32767",
    "--request-timeout",
    "10s",
];

/// How long a client waits for an answer: the time a request may take, and some for a machine with other work to do.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts the program with further flags.
fn server(flags: &[&str]) -> Server {
    Server::start(env!("CARGO_BIN_EXE_fairlead"), &[FLAGS, flags].concat())
}

fn no_panic(servers: &[Server]) {
    for server in servers {
        let log = server.log();
        assert!(!log.contains("panicked"), "{log}");
    }
}
