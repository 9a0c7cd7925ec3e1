//! Does the whole program go on serving while strangers, Pods and backends use up what they can, and
//! while calls of the kernel fail? Most of these runs are long: `./test --full` has them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../lb/lab.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod lab;

mod attacks;
mod faults;
mod polite;

use std::sync::{Mutex, MutexGuard, PoisonError};

use fairlead_testkit::{full, need};

/// Like [`alone`]; `None` also if the long runs were not asked for.
fn alone_in_long_run(test: &str, programs: &[&str]) -> Option<MutexGuard<'static, ()>> {
    if !full() {
        need::skip(test, "./test --full");
        return None;
    }
    alone(test, programs)
}

/// Waits until no other test of this program runs, as each needs the whole machine. `None`: a program is missing.
fn alone(test: &str, programs: &[&str]) -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let here = programs.iter().all(|program| need::need(test, program));
    here.then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}
