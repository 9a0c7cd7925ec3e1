//! The environment vectors: which variables Services give a container, and what becomes of its own.

use fairlead_testkit::{need, project};

use super::{output, runner};

#[test]
fn containers_have_the_recorded_environment() {
    if !need("containers_have_the_recorded_environment", "python3") {
        return;
    }
    let mut run = runner("env/run.py");
    run.arg(project().join("tests/conformance/env/dev"));
    run.args(["--exec", &format!("{} env --stdin", env!("CARGO_BIN_EXE_fairlead"))]);
    let (passed, printed) = output(run);
    assert!(passed && printed.contains("51 passed, 0 failed"), "{printed}");
}
