//! What `fairlead proxy` says when it cannot run: in a sentence, on stderr, with exit code 1 or, for the command line, 2.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use fairlead_testkit::need;

use super::lab::FAIRLEAD;

/// Somebody without rights.
const NOBODY: u32 = 65_534;

fn check(mut command: Command, code: i32, words: &[&str]) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{command:?}\n{text}");
    for word in words {
        assert!(text.contains(word), "{command:?}: no {word:?} in\n{text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

fn proxy(flags: &[&str]) -> Command {
    let mut command = Command::new(FAIRLEAD);
    command.arg("proxy").args(flags);
    command
}

#[test]
fn a_command_line_that_is_wrong_is_refused() {
    check(proxy(&["--no-such-option"]), 2, &["--no-such-option"]);
    check(proxy(&["--proxy-mode", "magic"]), 1, &["magic", "nftables"]);
    check(proxy(&["--cluster-cidr", "10.0.0.0/33"]), 1, &["cluster-cidr", "10.0.0.0/33"]);
    check(proxy(&["--manifests", "/no/such/file"]), 1, &["--manifests", "/no/such/file"]);
    check(proxy(&["--kubeconfig", "/no/such/file"]), 1, &["--kubeconfig", "/no/such/file"]);
    check(proxy(&["--config", "/no/such/file"]), 1, &["/no/such/file"]);
}

#[test]
fn a_configuration_file_that_is_wrong_is_refused_by_line() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("config.yaml");
    let head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
    let table = [
        ("mode: magic\n", ["line 3", "magic"]),
        ("iptables:\n  syncPeriod: soon\n", ["line 4", "iptables.syncPeriod"]),
        ("bindAddress: nowhere\n", ["line 3", "nowhere"]),
        (": [\n", ["config.yaml", "line"]),
    ];
    for (text, words) in table {
        fs::write(&file, format!("{head}{text}")).unwrap();
        check(proxy(&["--config", &file.display().to_string()]), 1, &words);
    }
}

#[test]
fn without_rights_it_says_so_and_ends() {
    if !need("without_rights_it_says_so_and_ends", "root") {
        return;
    }
    // Where everybody may read it.
    let home = tempfile::tempdir().unwrap();
    let (program, objects) = (home.path().join("fairlead"), home.path().join("objects.json"));
    fs::copy(FAIRLEAD, &program).unwrap();
    fs::write(&objects, r#"{"apiVersion": "v1", "kind": "List", "items": []}"#).unwrap();
    fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (mode, word) in [("nftables", "nftables"), ("iptables", "iptables"), ("userspace", "not permitted")] {
        let mut command = Command::new(&program);
        command.args(["proxy", "--proxy-mode", mode, "--hostname-override", "n1"]).arg("--manifests").arg(&objects);
        command.uid(NOBODY).gid(NOBODY);
        check(command, 1, &["fairlead: ", word]);
    }
    let mut command = Command::new(&program);
    command.arg("cleanup").uid(NOBODY).gid(NOBODY);
    check(command, 1, &["fairlead: cleaning up"]);
}
