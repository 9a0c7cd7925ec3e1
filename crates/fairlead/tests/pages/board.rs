//! Services at a glance, as they are and as they change, and one by one.

use std::thread;
use std::time::{Duration, Instant};

use fairlead_testkit::Server;
use serde_json::{Value, json};

use crate::browser::{Browser, PROGRAM, SERVICES, read, service, sign_in, text};

fn row(list: &Value, name: &str) -> Option<Value> {
    list["items"].as_array().unwrap().iter().find(|row| row["name"] == name).cloned()
}

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Reads a watch until its lines are enough, and returns them.
fn watch_until(browser: &Browser, path: &str, mut enough: impl FnMut(&[Value]) -> bool) -> Vec<Value> {
    let (mut lines, mut done) = (Vec::new(), false);
    let ended = browser.client.watch(path, |line| {
        lines.push(serde_json::from_str(line).expect("a line is JSON"));
        done = enough(&lines);
        !done
    });
    ended.expect("the stream goes on");
    assert!(done, "{lines:?}");
    lines
}

#[test]
fn the_list_has_a_row_a_service_and_the_stream_tells_what_changes() {
    let server = Server::start(PROGRAM, &[]);
    let (browser, admin) = (sign_in(&server, false), server.client());
    assert_eq!(admin.request("POST", SERVICES, &service("web").to_string()).unwrap().status, 201);
    let list = wait(&browser, |list| row(list, "web").is_some());
    let web = row(&list, "web").unwrap();
    assert_eq!(
        (&web["namespace"], &web["type"], &web["headless"]),
        (&json!("default"), &json!("ClusterIP"), &json!(false))
    );
    let port = json!([{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "web"}]);
    assert_eq!((&web["ports"], &web["ready"], &web["total"]), (&port, &json!(0), &json!(0)));
    assert!(web["addresses"][0].as_str().unwrap().starts_with("10.96."), "{web}");
    assert!(row(&list, "kubernetes").is_some());

    let since = text(&list, "revision");
    let gone = json!({"type": "DELETE", "namespace": "default", "name": "web"});
    let path = format!("/fairlead/v1/services?watch=1&since={since}");
    let mut changed = false;
    watch_until(&browser, &path, |lines| {
        // A beat comes at once, before anything changes.
        if !changed && lines.last().is_some_and(|line| line["type"] == "BEAT") {
            changed = true;
            assert_eq!(admin.request("POST", SERVICES, &service("second").to_string()).unwrap().status, 201);
            assert_eq!(admin.request("DELETE", &format!("{SERVICES}/web"), "").unwrap().status, 200);
        }
        let second = lines.iter().any(|line| line["type"] == "PUT" && line["row"]["name"] == "second");
        second && lines.contains(&gone)
    });
}

#[track_caller]
fn wait(browser: &Browser, fits: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + LIMIT;
    loop {
        let list = browser.get("/fairlead/v1/services");
        if fits(&list) {
            return list;
        }
        assert!(Instant::now() < until, "not in {LIMIT:?}: {list}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn endpoints_and_health_get_into_the_row_and_who_begins_to_watch_gets_all_rows() {
    let server = Server::start(PROGRAM, &[]);
    let (browser, admin) = (sign_in(&server, false), server.client());
    let bare = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "bare"},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    });
    assert_eq!(admin.request("POST", SERVICES, &bare.to_string()).unwrap().status, 201);
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "bare-1", "labels": {"kubernetes.io/service-name": "bare"}},
        "ports": [{"name": "http", "port": 8080}],
        "endpoints": [
            {"addresses": ["192.0.2.1"], "nodeName": "a"},
            {"addresses": ["192.0.2.2"], "conditions": {"ready": false}},
        ],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    assert_eq!(admin.request("POST", slices, &slice.to_string()).unwrap().status, 201);
    let ready = |row: &Value| row["ready"] == 1 && row["total"] == 2;
    wait(&browser, |list| row(list, "bare").is_some_and(|row| ready(&row)));
    let beat = |lines: &[Value]| lines.last().is_some_and(|line| line["type"] == "BEAT");
    let lines = watch_until(&browser, "/fairlead/v1/services?watch=true", beat);
    assert!(lines.iter().any(|line| line["row"]["name"] == "bare" && ready(&line["row"])), "{lines:?}");

    let detail = browser.get("/fairlead/v1/services/default/bare");
    assert_eq!(detail["row"]["name"], "bare");
    assert_eq!(detail["object"]["metadata"]["name"], "bare");
    let endpoint = &detail["endpoints"][0];
    assert_eq!(
        (&endpoint["address"], &endpoint["port"], &endpoint["ready"]),
        (&json!("192.0.2.1"), &json!(8080), &json!(true))
    );
    assert_eq!((&endpoint["connections"], &endpoint["bytesIn"]), (&json!(null), &json!(null)), "nobody counts here");
    assert_eq!(detail["endpoints"][1]["ready"], false);
    assert_eq!(detail["frontends"][0]["kind"], "clusterIP");
    assert_eq!(detail["findings"]["service"], "default/bare");
    assert_eq!(detail["events"], json!([]));
}

#[test]
fn a_server_alone_says_which_part_is_missing() {
    let server = Server::start(PROGRAM, &[]);
    let browser = sign_in(&server, false);
    for (path, part) in [("traffic", "proxy"), ("balancers", "load balancers"), ("dns?name=web", "DNS")] {
        let (code, message) = browser.try_get(&format!("/fairlead/v1/{path}"));
        assert_eq!(code, 404, "{path}: {message}");
        assert!(message.contains(part), "{path}: {message}");
    }
    assert_eq!(browser.get("/fairlead/v1/nodes"), json!({"items": []}));
    let report = browser.get("/fairlead/v1/explain?namespace=default&name=kubernetes");
    assert_eq!(report["service"], "default/kubernetes");
    let gone = browser.client.get("/fairlead/v1/services/default/nobody").unwrap();
    assert_eq!((gone.status, text(&read(&gone), "reason")), (404, "NotFound".to_owned()));
}
