//! Which Pod comes of which options.

use std::path::Path;

use clap::Parser;
use serde_json::{Value, json};

use super::{RunFlags, pod};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    flags: RunFlags,
}

fn read(line: &str) -> anyhow::Result<Value> {
    let words = ["run"].into_iter().chain(line.split_whitespace());
    pod(&Line::try_parse_from(words)?.flags, Some(Path::new("/srv")))
}

#[track_caller]
fn check(line: &str, pointer: &str, want: Value) {
    let made = read(line).unwrap();
    assert_eq!(made.pointer(pointer).cloned().unwrap_or_default(), want, "{line}: {made:#}");
}

#[test]
fn options_become_fields() {
    let container = "/spec/containers/0";
    check("--name web-1 -- sleep 1", "/metadata/name", json!("web-1"));
    check("-- /usr/bin/Python3.11 -m x", "/metadata/generateName", json!("python3-11-"));
    check("-- ./-- x", "/metadata/generateName", json!("run-"));
    check("-l app=MyApp,tier=x -- a", "/metadata/labels", json!({"app": "MyApp", "tier": "x"}));
    check("-- a b", container, json!({"name": "main", "image": "host", "command": ["a", "b"], "workingDir": "/srv"}));
    check(
        "-p http=80 -p 53/udp -- a",
        &format!("{container}/ports"),
        json!([{"containerPort": 80, "protocol": "TCP", "name": "http"}, {"containerPort": 53, "protocol": "UDP"}]),
    );
    let ready = format!("{container}/readinessProbe");
    let http = json!({"httpGet": {"path": "/x", "port": 80, "scheme": "HTTP"}, "periodSeconds": 1});
    check("-p 80 --ready http:/x -- a", &ready, http);
    check("--ready tcp:81 -- a", &ready, json!({"tcpSocket": {"port": 81}, "periodSeconds": 1}));
    check("-e A=b=c -- a", &format!("{container}/env"), json!([{"name": "A", "value": "b=c"}]));
    let user = json!({"runAsUser": 5, "runAsGroup": 6});
    check("--user 5:6 -- a", &format!("{container}/securityContext"), user);
    check("-w /var -- a", &format!("{container}/workingDir"), json!("/var"));
    check("-- a", "/spec/restartPolicy", json!("Always"));
    check("--rm -- a", "/spec/restartPolicy", json!("Never"));
    check("-i --restart OnFailure -- a", "/spec/restartPolicy", json!("OnFailure"));
    check("-i -t -- a", &format!("{container}/stdinOnce"), json!(true));
    check("--grace 5 -- a", "/spec/terminationGracePeriodSeconds", json!(5));
    check("--node n1 -- a", "/spec/nodeSelector", json!({"kubernetes.io/hostname": "n1"}));
}

#[test]
fn what_makes_no_sense_names_its_flag() {
    for (line, word) in [
        ("-p x=y -- a", "--port"),
        ("-p 0 -- a", "--port"),
        ("-p 80/ICMP -- a", "--port"),
        ("--ready http:/ -- a", "--ready"),
        ("-l app -- a", "--labels"),
        ("-e A -- a", "--env"),
        ("--user root -- a", "--user"),
    ] {
        let error = read(line).unwrap_err().to_string();
        assert!(error.contains(word), "{line}: {error}");
    }
    assert!(read("-d --rm -- a").is_err() && read("--name x").is_err());
}
