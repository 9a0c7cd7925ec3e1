//! Can any answer break a look?
#![no_main]

use std::time::Duration;

use fairlead_probe::{Check, Http, Scheme, look_with};
use libfuzzer_sys::fuzz_target;
use tokio::io::AsyncWriteExt;

const LIMIT: Duration = Duration::from_secs(1);

fuzz_target!(|input: &[u8]| {
    let Some((first, answer)) = input.split_first() else { return };
    let (host, port) = ("192.0.2.1".to_owned(), 80);
    let http = |scheme, host| Check::Http(Http { scheme, host, port, path: "/".to_owned(), headers: Vec::new() });
    let check = match first % 3 {
        0 => http(Scheme::Http, host),
        1 => http(Scheme::Https, host),
        _ => Check::Grpc { host, port, service: "a.B".to_owned() },
    };
    let hangs = first & 0x80 != 0;
    let run = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    run.expect("a run time").block_on(async {
        let dial = |_, _| async {
            let (ours, mut theirs) = tokio::io::duplex(1 << 16);
            let answer = answer.to_vec();
            tokio::spawn(async move {
                let _ = theirs.write_all(&answer).await;
                if hangs {
                    tokio::time::sleep(60 * LIMIT).await;
                }
            });
            Ok(ours)
        };
        let looked = tokio::time::timeout(2 * LIMIT, look_with(&check, LIMIT, dial)).await;
        assert!(looked.is_ok(), "a look does not end");
    });
});
