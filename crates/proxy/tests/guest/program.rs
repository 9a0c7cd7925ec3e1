//! The node proxy as a whole, from manifests to packets, in mode IPVS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use fairlead_cluster::Cluster;
use fairlead_proxy::{Detection, Mode, Pages, Settings, run};
use tokio_util::sync::CancellationToken;

use crate::Checks;
use crate::cluster::VIP;
use crate::lab::{Came, Lab, NODE, at, ip};

pub(crate) const CHECKS: Checks = &[("the node proxy serves manifests, mends and leaves its rules", true, |lab| {
    let stop = CancellationToken::new();
    let proxy = start(lab, stop.clone());
    assert!(eventually(|| answers(lab)), "nobody answers");
    let mut open = lab.open("out", at(VIP, 80));
    assert_eq!(proxy_mode(lab), "ipvs");
    lab.tool("nft flush ruleset; ip addr del 10.96.0.10/32 dev fl-ipvs0");
    assert!(eventually(|| lab.tool("nft list tables").contains("fairlead-ipvs") && answers(lab)), "it is not mended");
    stop.cancel();
    proxy.join().unwrap();
    assert!(open.is_alive() && answers(lab));
    // Nobody is left who would mend it.
    lab.tool("ipvsadm -C; nft flush ruleset");
    std::thread::sleep(Duration::from_secs(3));
    assert!(!lab.tool("nft list tables").contains("fairlead-ipvs"));
})];

const MANIFESTS: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ipFamilies: [IPv4], ports: [{port: 80, targetPort: 8080, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: default, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.50.1.11], nodeName: n1, conditions: {ready: true}}]
"#;

fn start(lab: &Lab, stop: CancellationToken) -> std::thread::JoinHandle<()> {
    let path = std::env::temp_dir().join("manifests.yaml");
    std::fs::write(&path, MANIFESTS).unwrap();
    let settings = Settings {
        mode: Some(Mode::Ipvs),
        node: "n1".to_owned(),
        node_ips: NODE.map(ip).into(),
        detection: Detection::ClusterCidr(vec!["10.50.0.0/16".parse().unwrap()]),
        ..Settings::default()
    };
    let node = lab.node.clone();
    std::thread::spawn(move || {
        node.enter().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (cluster, _) = Cluster::from_manifests(&path).unwrap();
        runtime.block_on(run(cluster, settings, Pages::default(), stop)).unwrap();
    })
}

fn answers(lab: &Lab) -> bool {
    matches!(lab.tcp("out", at(VIP, 80)), Came::Answer { from, .. } if from == "p1")
}

fn eventually(holds: impl Fn() -> bool) -> bool {
    (0..60).any(|_| {
        std::thread::sleep(Duration::from_millis(500));
        holds()
    })
}

/// What `/proxyMode` says.
fn proxy_mode(lab: &Lab) -> String {
    let ask = || {
        let mut stream = TcpStream::connect(at("127.0.0.1", 10249)).unwrap();
        stream.write_all(b"GET /proxyMode HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = lab.node.run(ask).unwrap();
    answer.split("\r\n\r\n").nth(1).unwrap_or_default().trim().to_owned()
}
