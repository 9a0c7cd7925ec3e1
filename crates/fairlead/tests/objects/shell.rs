//! Completions and manual pages.

use std::io::Write;
use std::process::{Command, Stdio};

use fairlead_testkit::need;

use crate::house::{PROGRAM, told};

#[test]
fn shells_take_their_completions() {
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let made = told(Command::new(PROGRAM).args(["completion", shell]).output().expect("the program runs"));
        assert!(made.fine && made.printed.contains("describe"), "{shell}");
        if !need("objects::shell::completions", shell) {
            continue;
        }
        let mut child =
            Command::new(shell).arg(check).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell");
        child.stdin.take().expect("asked for").write_all(made.printed.as_bytes()).expect("it reads");
        let read = told(child.wait_with_output().expect("it ends"));
        assert!(read.fine && read.complained.is_empty(), "{shell}: {}", read.complained);
    }
}

#[test]
fn bash_completes_commands() {
    if !need("objects::shell::bash", "bash") {
        return;
    }
    let script = format!(
        "source <({PROGRAM} completion bash); COMP_WORDS=(fairlead desc); COMP_CWORD=1; _fairlead fairlead desc fairlead; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let completed = told(Command::new("bash").args(["-c", &script]).output().expect("bash runs"));
    assert_eq!(completed.printed, "describe\n", "{}", completed.complained);
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let written =
        Command::new(PROGRAM).args(["man", "--dir"]).arg(directory.path()).output().expect("the program runs");
    assert!(written.status.success());
    for name in ["fairlead.1", "fairlead-get.1", "fairlead-lb-drain.1"] {
        let text = std::fs::read_to_string(directory.path().join(name)).expect(name);
        assert!(text.contains(".SH SYNOPSIS") && (text.contains("Example") || name == "fairlead.1"), "{name}:\n{text}");
    }
    let wrong = told(Command::new(PROGRAM).args(["man", "nothing"]).output().expect("the program runs"));
    assert!(!wrong.fine && wrong.complained.starts_with("fairlead: fairlead has no command \"nothing\""), "{wrong:?}");
}
