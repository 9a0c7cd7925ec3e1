//! What containers wrote.

use std::io::Write;

use tokio::io::{AsyncBufReadExt, BufReader};

use crate::house::{House, Way};

fn write(house: &House, container: &str, lines: &[&str]) {
    let path = house.dir.path().join(format!("{container}.log"));
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path).expect("a file");
    for line in lines {
        writeln!(file, "2026-01-01T00:00:00.5Z stdout F {line}").expect("written");
    }
    house.host.logs.lock().expect("no panic").insert(("p".to_owned(), container.to_owned()), path);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_shown_as_asked() {
    for way in [Way::Memory, Way::Tls] {
        let Some(house) = House::new("logs", way).await else { return };
        write(&house, "c", &["one", "two", "three"]);
        house.kubectl(&["logs", "p"], b"").await.check(0, "one\ntwo\nthree\n", "");
        house.kubectl(&["logs", "p", "--tail=1"], b"").await.check(0, "three\n", "");
        house.kubectl(&["logs", "p", "--since=1h"], b"").await.check(0, "", "");
        house.kubectl(&["logs", "p", "--limit-bytes=5"], b"").await.check(0, "one\nt", "");
        house.kubectl(&["logs", "p", "--tail=1", "--timestamps"], b"").await.check(
            0,
            "2026-01-01T00:00:00.5Z three\n",
            "",
        );
        let why = "previous terminated container \"c\" in pod \"p\" not found";
        house.kubectl(&["logs", "p", "--previous"], b"").await.check(1, "", why);
        house.kubectl(&["logs", "two", "-c", "d"], b"").await.check(1, "", "pod \"two\" has no log");
        house.kubectl(&["logs", "nowhere"], b"").await.check(0, "", "");
        let raw = "/api/v1/namespaces/default/pods/p/log?container=x";
        house.kubectl(&["get", "--raw", raw], b"").await.check(1, "", "container x is not valid for pod p");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_until_the_container_ends() {
    let Some(house) = House::new("a_log", Way::Memory).await else { return };
    write(&house, "c", &["one"]);
    let mut child = house.command(&["logs", "-f", "p"]).spawn().expect("kubectl");
    let mut lines = BufReader::new(child.stdout.take().expect("out")).lines();
    assert_eq!(lines.next_line().await.expect("a line").as_deref(), Some("one"));
    for word in ["two", "three"] {
        write(&house, "c", &[word]);
        assert_eq!(lines.next_line().await.expect("a line").as_deref(), Some(word));
    }
    house.host.ended.cancel();
    assert_eq!(lines.next_line().await.expect("an end"), None);
    assert!(child.wait().await.expect("an end").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_tells_of_itself_and_gives_no_commands() {
    let Some(house) = House::new("a_node", Way::Tls).await else { return };
    let node = "/api/v1/nodes/n/proxy";
    house.kubectl(&["get", "--raw", &format!("{node}/healthz")], b"").await.check(0, "ok", "");
    let pods = house.kubectl(&["get", "--raw", &format!("{node}/pods")], b"").await;
    assert!(pods.out.contains(r#""kind":"PodList""#), "{pods:?}");
    let exec = format!("{node}/exec/default/p/c?command=id&output=1");
    house.kubectl(&["get", "--raw", &exec], b"").await.check(1, "", "nodes \"n\" is forbidden");
}
