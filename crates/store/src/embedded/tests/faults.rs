//! Errors of single calls: each call of a store once, from its opening over several turns of the
//! journal to its closing.

use std::time::{Duration, Instant};

use super::power_cut::{Machine, Told, leave_a_journal, seeded};
use super::{contents, write};
use crate::{Backend, Error};

/// Number and name of errors that go away (asm-generic/errno-base.h, errno.h).
const TEMPORARY: [(i32, &str); 7] =
    [(4, "EINTR"), (11, "EAGAIN"), (12, "ENOMEM"), (23, "ENFILE"), (24, "EMFILE"), (28, "ENOSPC"), (122, "EDQUOT")];

const EIO: i32 = 5;

/// Calls from opening to closing, at least.
const CALLS: u32 = 100;

#[tokio::test]
async fn a_store_goes_on_by_itself_after_a_temporary_error_of_any_call() {
    let mut rng = seeded();
    for (errno, name) in TEMPORARY {
        let mut calls = 0;
        // Each error at some calls, all of them at each call together; each of them at each call in
        // the long run.
        let step = if full() { 1 } else { TEMPORARY.len() as u32 };
        calls += if full() { 0 } else { rng.u32(..step) };
        while fail_and_go_on(&mut rng, calls, errno, name).await {
            calls += step;
        }
        assert!(calls > CALLS, "{calls} calls are not the whole story");
    }
}

#[tokio::test]
async fn a_store_says_that_it_takes_no_writes_after_an_input_output_error_of_any_call() {
    let mut rng = seeded();
    let mut calls = 0;
    while fail_and_restart(&mut rng, calls).await {
        calls += 1;
    }
    assert!(calls > CALLS, "{calls} calls are not the whole story");
}

fn full() -> bool {
    std::env::var_os("FAIRLEAD_FULL").is_some_and(|value| value == "1")
}

/// Fails some calls after so many; returns true if that was before the end.
async fn fail_and_go_on(rng: &mut fastrand::Rng, calls: u32, errno: i32, name: &str) -> bool {
    let machine = Machine::make();
    let mut told = Told::default();
    leave_a_journal(&machine, &mut told, rng).await;
    machine.fail(calls, errno, rng.u32(1..4));
    let began = Instant::now();
    // A database that cannot be opened at all cannot be read either: this start ends with an error,
    // and the next succeeds.
    let store = loop {
        match machine.open() {
            Ok(store) => break store,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(10), "{name} after {calls} calls: {error}"),
        }
    };
    told.check(&store).await;
    for _ in 0..12 {
        while let Err(error) = told.write(&store, rng, 1).await {
            assert!(matches!(&error, Error::Unavailable(why) if !why.contains("closed")), "{error}");
            assert!(began.elapsed() < Duration::from_secs(10), "{name} after {calls} calls: {error}");
            // What was acknowledged is read meanwhile.
            told.check(&store).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    while let Err(error) = store.health().await {
        assert!(began.elapsed() < Duration::from_secs(10), "{name} after {calls} calls: {error}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(store);
    let failed = machine.has_failed();
    machine.cut(rng);
    told.check(&machine.open().unwrap_or_else(|error| panic!("{name} after {calls} calls: {error}"))).await;
    failed
}

/// Fails one call after so many; returns true if that was before the end.
async fn fail_and_restart(rng: &mut fastrand::Rng, calls: u32) -> bool {
    let machine = Machine::make();
    let mut told = Told::default();
    leave_a_journal(&machine, &mut told, rng).await;
    machine.fail(calls, EIO, 1);
    if let Ok(store) = machine.open() {
        told.check(&store).await;
        if let Err(error) = told.write(&store, rng, 12).await {
            assert!(matches!(&error, Error::Unavailable(why) if !why.contains("closed")), "{error}");
            assert!(matches!(store.health().await, Err(Error::Unavailable(_))), "after {calls} calls");
            assert!(write(&store, vec![super::put("/registry/pods/ns/later", "x")]).await.is_err());
            contents(&store, None).await;
        }
        drop(store);
    }
    let failed = machine.has_failed();
    machine.cut(rng);
    let store = machine.open().unwrap_or_else(|error| panic!("after {calls} calls: {error}"));
    told.check(&store).await;
    told.write(&store, rng, 3).await.expect("the disk works again");
    failed
}
