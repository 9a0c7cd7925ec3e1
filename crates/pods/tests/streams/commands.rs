//! Commands beside a Pod's containers, and their streams.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::{Instant, sleep};

use crate::house::{House, Way};

const WAYS: [Way; 3] = [Way::Memory, Way::Tls, Way::Spdy];

#[tokio::test(flavor = "multi_thread")]
async fn a_command_has_its_streams_and_its_exit_code() {
    for way in WAYS {
        let Some(house) = House::new("commands", way).await else { return };
        let done = house.kubectl(&["exec", "p", "--", "sh", "-c", "echo out; echo err >&2; exit 3"], b"").await;
        done.check(3, "out\n", "err\ncommand terminated with exit code 3");
        house.kubectl(&["exec", "p", "--", "true"], b"").await.check(0, "", "");
        house.kubectl(&["exec", "-i", "p", "--", "cat"], b"one\ntwo").await.check(0, "one\ntwo", "");
        // The end of the input is told, and what comes after it still arrives.
        house
            .kubectl(&["exec", "-i", "p", "--", "sh", "-c", "wc -c; exit 4"], &[b'x'; 100])
            .await
            .check(4, "100\n", "");
        house.kubectl(&["exec", "two", "-c", "d", "--", "echo", "a b", "$c"], b"").await.check(0, "a b $c\n", "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lot_of_input_comes_back_whole() {
    for way in WAYS {
        let Some(house) = House::new("commands", way).await else { return };
        let lines: String = (0..500_000).map(|at| format!("{at:09}\n")).collect();
        let done = house.kubectl(&["exec", "-i", "p", "--", "cat"], lines.as_bytes()).await;
        assert!(done.out == lines, "{} of {} bytes came back: {}", done.out.len(), lines.len(), done.err);
        // One that does not read its input ends all the same.
        house.kubectl(&["exec", "-i", "p", "--", "sh", "-c", "exit 5"], lines.as_bytes()).await.check(5, "", "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_is_said() {
    for way in [Way::Spdy, Way::Memory] {
        let Some(house) = House::new("commands", way).await else { return };
        let done = house.kubectl(&["exec", "p", "--", "no-such-program"], b"").await;
        done.check(1, "", "exec: \"no-such-program\": executable file not found in $PATH");
    }
    let Some(house) = House::new("commands", Way::Memory).await else { return };
    let raw = |path: &str| ["get", "--raw", path].map(str::to_owned);
    let check = async |path: &str, err: &str| {
        let arguments = raw(path);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        house.kubectl(&arguments, b"").await.check(1, "", err);
    };
    let pods = "/api/v1/namespaces/default/pods";
    check(&format!("{pods}/none/exec?command=ls&stdout=1"), "pods \"none\" not found").await;
    check(&format!("{pods}/p/exec?command=ls&stdout=1&container=x"), "container x is not valid for pod p").await;
    let choose = "a container name must be specified for pod two, choose one of: [c d]";
    check(&format!("{pods}/two/exec?command=ls&stdout=1"), choose).await;
    check(&format!("{pods}/nowhere/exec?command=ls&stdout=1"), "pod nowhere does not have a host assigned").await;
    check(&format!("{pods}/p/exec?command=ls&stdout=1"), "Upgrade request required").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_one_and_knows_its_size() {
    if !fairlead_testkit::need("a_terminal", "script") {
        return;
    }
    for way in [Way::Memory, Way::Spdy] {
        let Some(house) = House::new("a_terminal", way).await else { return };
        terminal(&house).await;
    }
}

async fn terminal(house: &House) {
    // kubectl asks for a terminal only if it has one itself.
    let command = house.command(&["exec", "-it", "p", "--", "sh", "-c", "tty; exit 6"]);
    let words: Vec<String> = std::iter::once(command.as_std().get_program())
        .chain(command.as_std().get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let mut outer = tokio::process::Command::new("script");
    outer.args(["-qec", &format!("stty cols 91 rows 17; {}", words.join(" ")), "/dev/null"]);
    outer.envs(command.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let done = house.run(outer, b"").await;
    assert!(done.out.contains("/dev/pts/") && done.code == 6, "{done:?}");
    assert_eq!(house.host.sizes.lock().expect("no panic").first(), Some(&(91, 17)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_is_attached_to() {
    for way in WAYS {
        let Some(house) = House::new("a_container", way).await else { return };
        let mut child =
            house.command(&["attach", "-i", "p"]).stdin(std::process::Stdio::piped()).spawn().expect("kubectl");
        let (mut stdin, stdout) = (child.stdin.take().expect("in"), child.stdout.take().expect("out"));
        let mut lines = BufReader::new(stdout).lines();
        assert_eq!(lines.next_line().await.expect("a line").as_deref(), Some("attached to p"));
        for word in ["one", "two"] {
            stdin.write_all(format!("{word}\n").as_bytes()).await.expect("written");
            assert_eq!(lines.next_line().await.expect("a line"), Some(format!("got {word}")));
        }
        drop(stdin);
        assert!(child.wait().await.expect("an end").success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_with_its_client() {
    for way in [Way::Memory, Way::Spdy] {
        let Some(house) = House::new("a_command", way).await else { return };
        ends_with_its_client(&house).await;
    }
}

async fn ends_with_its_client(house: &House) {
    let mark = house.dir.path().join("mark");
    let beat = format!("while true; do date +%s%N > {}; sleep 0.05; done", mark.display());
    let mut child = house.command(&["exec", "p", "--", "sh", "-c", &beat]).spawn().expect("kubectl");
    let end = Instant::now() + Duration::from_secs(20);
    while !mark.exists() {
        assert!(Instant::now() < end, "the command did not start");
        sleep(Duration::from_millis(20)).await;
    }
    child.kill().await.expect("killed");
    loop {
        let before = std::fs::read(&mark).expect("a mark");
        sleep(Duration::from_millis(500)).await;
        if std::fs::read(&mark).expect("a mark") == before {
            return;
        }
        assert!(Instant::now() < end, "the command still runs");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_copied_both_ways() {
    if !fairlead_testkit::need("files", "tar") {
        return;
    }
    let Some(house) = House::new("files", Way::Memory).await else { return };
    let path = |name: &str| house.dir.path().join(name).display().to_string();
    let bytes: Vec<u8> = (0..1_000_000u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(path("here"), &bytes).expect("written");
    std::fs::create_dir(path("there")).expect("a directory");
    house.kubectl(&["cp", &path("here"), &format!("p:{}", path("there/copy"))], b"").await.check(0, "", "");
    assert!(std::fs::read(path("there/copy")).expect("a copy") == bytes);
    let done = house.kubectl(&["cp", &format!("p:{}", path("there/copy")), &path("back")], b"").await;
    assert_eq!(done.code, 0, "{done:?}");
    assert!(std::fs::read(path("back")).expect("a copy") == bytes);
}
