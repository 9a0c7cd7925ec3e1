//! What only a kernel with IPVS and SCTP can show. Few machines have one, so the test boots a guest that does and runs itself
//! inside: on the host it starts the guest and reads what comes back, in the guest it runs the checks, one line each.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on has failed")]

mod balance;
mod cluster;
mod kernel;
mod lab;
mod lasting;
mod policy;
mod program;
mod random;
mod repair;
mod sctp;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Instant;

use lab::Lab;

/// Set inside the guest: to nothing for all checks, else only those whose name contains it.
const INSIDE: &str = "FAIRLEAD_IN_GUEST";
/// How long the guest may take, in seconds. It runs without the help of the processor, at a tenth of the speed.
const LIMIT_S: u32 = 900;

/// Something that must hold in the guest, by name.
struct Check {
    name: &'static str,
    /// Whether every `./test` shows it.
    short: bool,
    run: fn(&Lab),
}

/// Checks of one kind: name, whether every `./test` shows it, and what is done.
type Checks = &'static [(&'static str, bool, fn(&Lab))];

fn checks() -> Vec<Check> {
    let parts = [
        kernel::CHECKS,
        balance::CHECKS,
        policy::CHECKS,
        lasting::CHECKS,
        repair::CHECKS,
        random::CHECKS,
        program::CHECKS,
        sctp::CHECKS,
    ];
    let one = |(name, short, run): &(&'static str, bool, fn(&Lab))| Check { name, short: *short, run: *run };
    parts.into_iter().flatten().map(one).collect()
}

#[test]
fn ipvs_and_sctp_in_a_guest() {
    match std::env::var(INSIDE) {
        Ok(wanted) => inside(&wanted),
        Err(_) => boot(),
    }
}

#[test]
fn a_kernel_without_ipvs_is_said_to_have_none() {
    let settings = fairlead_proxy::Settings::default();
    match fairlead_proxy::dataplane(fairlead_proxy::Mode::Ipvs, &settings) {
        Ok(_) => assert!(std::path::Path::new("/proc/net/ip_vs").exists()),
        Err(error) => {
            let known = ["IPVS is not available", "the dummy network device is not", "Operation not permitted"];
            assert!(known.iter().any(|part| error.to_string().contains(part)), "{error}");
        }
    }
}

fn boot() {
    const TEST: &str = "ipvs_and_sctp_in_a_guest";
    let guest = fairlead_testkit::project().join("tests/guest");
    if !["qemu-system-x86_64", "dpkg-deb", "apt-get"].iter().all(|program| fairlead_testkit::need(TEST, program)) {
        return;
    }
    let built = Command::new(guest.join("build")).output().unwrap();
    if !built.status.success() {
        println!("{}", String::from_utf8_lossy(&built.stderr));
        return fairlead_testkit::need::skip(TEST, "the packages of tests/guest/build");
    }
    let wanted = if fairlead_testkit::full() { "" } else { "short" };
    let wanted = std::env::var("FAIRLEAD_GUEST_CHECKS").unwrap_or_else(|_| wanted.to_owned());
    let output = Command::new(guest.join("run"))
        .args(["-t", &LIMIT_S.to_string(), "-e", &format!("{INSIDE}={wanted}"), "-e", "RUST_BACKTRACE=0"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    let failed: Vec<&str> = text.lines().filter(|line| line.starts_with("FAILED ")).collect();
    let held = text.lines().filter(|line| line.starts_with("ok ")).count();
    let expected = checks().iter().filter(|check| is_wanted(check, &wanted)).count();
    assert!(failed.is_empty() && output.status.success(), "{failed:#?} {}", output.status);
    assert_eq!(held, expected);
}

fn is_wanted(check: &Check, wanted: &str) -> bool {
    match wanted {
        "short" => check.short,
        part => check.name.contains(part),
    }
}

/// Runs the checks one after the other, each with nothing of ours in the kernel before.
fn inside(wanted: &str) {
    let lab = Lab::new();
    let mut failed = 0;
    for check in checks().iter().filter(|check| is_wanted(check, wanted)) {
        let began = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| (check.run)(&lab)));
        let took = began.elapsed().as_secs_f32();
        match done {
            Ok(()) => println!("ok {} ({took:.1} s)", check.name),
            Err(why) => {
                failed += 1;
                let why = why.downcast_ref::<String>().cloned();
                println!("FAILED {} ({took:.1} s): {}", check.name, why.unwrap_or_default().replace('\n', " | "));
                println!("{}", lab.state());
            }
        }
        lab.clean();
    }
    assert_eq!(failed, 0);
}
