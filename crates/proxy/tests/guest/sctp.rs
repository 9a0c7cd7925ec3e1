//! SCTP, which only this kernel has: through virtual addresses and node ports, in every mode of the kernel.

use std::process::{Child, Command, Stdio};

use fairlead_api::view::{Protocol, Service};
use fairlead_proxy::Mode;

use crate::Checks;
use crate::cluster::{Cluster, VIP, VIP6, exposed, service, speaks};
use crate::lab::{Lab, NODE};

pub(crate) const CHECKS: Checks = &[
    ("SCTP in mode ipvs", true, |lab| everywhere(lab, Mode::Ipvs)),
    ("SCTP in mode nftables", true, |lab| everywhere(lab, Mode::Nftables)),
    ("SCTP in mode iptables", true, |lab| everywhere(lab, Mode::Iptables)),
    ("SCTP in mode ipvs is given out in turn", false, |lab| {
        let _cluster = Cluster::ipvs(lab, service(talking), "p1 p2");
        let servers = Servers::start(lab);
        let mut answers: Vec<String> = (0..4).map(|_| associate(lab, "out", &format!("{VIP}:80"), 15)).collect();
        answers.sort();
        assert_eq!(answers, ["p1", "p1", "p2", "p2"]);
        drop(servers);
    }),
    ("SCTP without endpoints is refused", false, |lab| {
        for mode in [Mode::Ipvs, Mode::Nftables] {
            let cluster = Cluster::new(lab, mode, service(talking), "");
            assert_eq!(associate(lab, "out", &format!("{VIP}:80"), 3), "", "{mode}");
            drop(cluster);
            lab.clean();
        }
    }),
];

fn talking(service: &mut Service) {
    exposed(service);
    speaks(service, Protocol::Sctp);
    service.spec.cluster_ips = vec![VIP.to_owned(), VIP6.to_owned()];
}

/// Programs that answer in Pods.
struct Servers(Vec<Child>);

impl Servers {
    fn start(lab: &Lab) -> Servers {
        let start = |name: &str| {
            let mut command = Command::new("socat");
            command.args(["SCTP6-LISTEN:8080,fork,reuseaddr,ipv6only=0", &format!("SYSTEM:echo {name}")]);
            lab.spawn(name, command.stdout(Stdio::null()).stderr(Stdio::null()))
        };
        let servers = Servers(["p1", "p2"].map(start).into());
        for name in ["p1", "p2"] {
            let listens = || lab.tool_in(name, "cat /proc/net/sctp/eps 2>/dev/null || true").contains("8080");
            let up = (0..50).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(100));
                listens()
            });
            assert!(up, "nobody listens in {name}");
        }
        servers
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.0 {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Who answers an association, if anybody does.
fn associate(lab: &Lab, from: &str, to: &str, patience_s: u32) -> String {
    let family = if to.starts_with('[') { 6 } else { 4 };
    let output = lab
        .namespace(from)
        .run(|| {
            let to = format!("SCTP{family}:{to},connect-timeout={patience_s}");
            Command::new("socat").args(["-u", &to, "-"]).output().unwrap()
        })
        .unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn everywhere(lab: &Lab, mode: Mode) {
    let _cluster = Cluster::new(lab, mode, service(talking), "p1 p2");
    let servers = Servers::start(lab);
    let (node, vip, vip6) = (format!("{}:30080", NODE[0]), format!("{VIP}:80"), format!("[{VIP6}]:80"));
    let ways = [("out", &vip), ("p3", &vip), ("node", &vip), ("out", &node), ("out", &vip6)];
    for (from, to) in ways {
        let answer = associate(lab, from, to, 15);
        assert!(["p1", "p2"].contains(&answer.as_str()), "{mode}: {from} to {to}: {answer:?}");
    }
    drop(servers);
}
