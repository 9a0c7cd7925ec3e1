//! What can be told from files, and how: the text for people, and the exit code.

use std::process::{Command, Output};

const FAIRLEAD: &str = env!("CARGO_BIN_EXE_fairlead");

/// A Service whose selector is wrong by a letter, and one that looks well.
const MANIFESTS: &str = "
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, labels: {app: wbe}}
spec: {nodeName: n1, containers: [{name: main, ports: [{containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.244.0.5, podIPs: [{ip: 10.244.0.5}], conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Service
metadata: {name: outside, namespace: shop}
spec: {clusterIP: 10.96.0.11, clusterIPs: [10.96.0.11], ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: outside-1, namespace: shop, labels: {kubernetes.io/service-name: outside}}
addressType: IPv4
endpoints: [{addresses: [192.0.2.7]}]
ports: [{name: \"\", port: 8080, protocol: TCP}]
";

fn explain(words: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("dump.yaml");
    std::fs::write(&file, MANIFESTS).unwrap();
    Command::new(FAIRLEAD).arg("explain").args(words).arg("--manifests").arg(&file).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn people_are_told_what_is_wrong_and_which_command_mends_it() {
    let said = explain(&["svc/web", "-n", "shop"]);
    let out = text(&said.stdout);
    assert_eq!(said.status.code(), Some(1), "{out}{}", text(&said.stderr));
    for line in [
        "✓ The Service exists\n",
        "✗ Its selector matches Pods\n",
        "  LabelValueDiffers: ",
        "    $ kubectl label pod web-1 -n shop app=web --overwrite\n",
        "\nshop/web does not work: ",
    ] {
        assert!(out.contains(line), "{line:?} is not in\n{out}");
    }
    assert!(!out.contains('\x1b'), "no colours for who is no terminal:\n{out}");
}

#[test]
fn what_only_a_machine_can_see_is_said_to_be_unknown() {
    for words in [&["svc/shop/outside"][..], &["service", "outside", "-n", "shop"], &["outside", "-n", "shop"]] {
        let said = explain(words);
        let out = text(&said.stdout);
        assert_eq!(said.status.code(), Some(2), "{words:?}: {out}{}", text(&said.stderr));
        assert!(out.contains("only files were looked at"), "{out}");
    }
}

#[test]
fn mistakes_on_the_command_line_say_what_to_write() {
    for (words, why) in [
        (&["pod/web-1"][..], "only Services are explained"),
        (&["svc/"], "svc/web"),
        (&["svc/web", "--from", "elsewhere"], "want pod/NAME"),
        (&["svc/shop/web", "--from", "pod/shop/wbe-1"], "--from: there is no Pod shop/wbe-1, but one named web-1"),
        (&["svc/shop/web", "--from", "pod/client"], "--from: there is no Pod default/client"),
        (&["svc/web", "--port", "80/XYZ"], "want TCP, UDP or SCTP"),
        (&["svc/web", "--live"], "--live"),
    ] {
        let said = explain(words);
        assert_eq!(said.status.code(), Some(2), "{words:?}");
        assert!(text(&said.stderr).contains(why), "{words:?}: {}", text(&said.stderr));
    }
}
