//! Where tests of the kernel run: a network namespace of their own, which is gone when they end.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::process::Command;

use fairlead_kernel::netns::Namespace;

/// Runs `work` in a new network namespace; skips it where none may be made, or nothing can look
/// at what was done.
pub(crate) fn in_namespace(test: &str, work: impl FnOnce() + Send) {
    if !["ip", "nft", "conntrack"].iter().all(|program| fairlead_testkit::need(test, program)) {
        return;
    }
    let Ok(namespace) = Namespace::unnamed() else {
        fairlead_testkit::need::skip(test, "root");
        return;
    };
    namespace.run(work).expect("a namespace that was made can be entered");
}

/// Runs a program in the namespace of this thread and returns what it prints.
pub(crate) fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    text
}
