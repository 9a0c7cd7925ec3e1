//! Is a Node given from a real kube-proxy to ours under traffic, without a connection that fails or ends?

use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Instant;

use fairlead_testkit::https::connection::Connection;
use fairlead_testkit::need::{need, program};

use super::churn::{Seen, ask, serve};
use super::lab::{CLIENTS, LIMIT, Lab, WEB, alive, lab, name, objects, tool};

#[test]
fn kube_proxy_in_mode_nftables_gives_way_to_ours() {
    check("kube_proxy_in_mode_nftables_gives_way_to_ours", "nftables");
}

#[test]
fn kube_proxy_in_mode_iptables_gives_way_to_ours() {
    check("kube_proxy_in_mode_iptables_gives_way_to_ours", "iptables");
}

/// As docs/start-cluster.md has it: theirs ends, ours begins, what theirs left is removed.
fn check(test: &str, mode: &str) {
    if !need(test, "kube-proxy") {
        return;
    }
    let Some(lab) = lab(test) else { return };
    let (server, mut api) = serve(&lab);
    addressed(&mut api);
    let kubeconfig = server.kubeconfig().display().to_string();
    let mut theirs = KubeProxy::start(&lab, &kubeconfig, mode);
    until("kube-proxy serves", || lab.who(WEB, CLIENTS[0]).is_ok());
    let mut held = lab.connect(WEB, CLIENTS[0]).unwrap();
    name(&mut held).unwrap();

    let seen = Seen::default();
    std::thread::scope(|scope| {
        for client in CLIENTS {
            let (lab, seen) = (&lab, &seen);
            scope.spawn(move || lab.clients.run(|| ask(client, seen)).unwrap());
        }
        until("clients are busy", || seen.connections.load(Ordering::Relaxed) > 100);
        theirs.stop();
        assert!(theirs_left(&lab), "its rules serve until ours do");
        let ours = lab.spawn("nftables", &["--kubeconfig", &kubeconfig]);
        ours.wait("our rules are in", || lab.ruleset().contains("table ip fairlead") && lab.syncs() > 0);
        KubeProxy::clean_up(&lab, &kubeconfig, mode);
        assert!(!theirs_left(&lab), "{}", lab.ruleset());
        let before = seen.connections.load(Ordering::Relaxed);
        until("clients went on", || seen.connections.load(Ordering::Relaxed) > before + 100);
        seen.over.store(true, Ordering::Relaxed);
    });
    let (connections, failed) = (seen.connections.load(Ordering::Relaxed), seen.failed.load(Ordering::Relaxed));
    assert_eq!(failed, 0, "of {connections} connections while kube-proxy gave way");
    assert!(alive(&mut held), "a connection goes on that began under kube-proxy");
}

/// kube-proxy waits for an address of its Node.
fn addressed(api: &mut Connection) {
    let status = serde_json::json!({"status": objects()[0]["status"]}).to_string();
    let path = "/api/v1/nodes/n1/status";
    let answer = api.send("PATCH", path, "application/merge-patch+json", status.as_bytes()).unwrap();
    assert!(answer.status < 300, "{}", String::from_utf8_lossy(&answer.body));
}

/// Whether rules of kube-proxy for the Service are in the kernel.
fn theirs_left(lab: &Lab) -> bool {
    let rules = lab.ruleset() + &tool(&lab.node, "iptables-save");
    rules.contains("table ip kube-proxy") || rules.contains("KUBE-SVC-")
}

#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

struct KubeProxy(Child);

impl KubeProxy {
    fn start(lab: &Lab, kubeconfig: &str, mode: &str) -> KubeProxy {
        let mut command = KubeProxy::command(kubeconfig, mode);
        KubeProxy(lab.node.run(|| command.spawn()).unwrap().unwrap())
    }

    fn clean_up(lab: &Lab, kubeconfig: &str, mode: &str) {
        let mut command = KubeProxy::command(kubeconfig, mode);
        command.arg("--cleanup");
        assert!(lab.node.run(|| command.status()).unwrap().unwrap().success());
    }

    fn command(kubeconfig: &str, mode: &str) -> Command {
        let mut command = Command::new(program("kube-proxy").expect("it was looked for"));
        command.args(["--kubeconfig", kubeconfig, "--proxy-mode", mode, "--hostname-override", "n1"]);
        command.args(["--cluster-cidr", "10.50.0.0/16", "--nodeport-addresses", "172.30.0.11/32"]);
        // It ends where it may not write a parameter of the whole machine, unless told not to.
        for parameter in ["max-per-core", "tcp-timeout-established", "tcp-timeout-close-wait"] {
            command.arg(format!("--conntrack-{parameter}=0"));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Ends it as an administrator would.
    fn stop(&mut self) {
        let told = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().unwrap();
        assert!(told.success());
        self.0.wait().unwrap();
    }
}

impl Drop for KubeProxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
