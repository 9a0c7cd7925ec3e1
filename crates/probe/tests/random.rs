//! Whatever bytes come back, a look ends in time and without a panic.

use std::time::Duration;

use fairlead_probe::{Check, Http, Scheme, look_with};
use proptest::prelude::*;
use tokio::io::AsyncWriteExt;

/// Pieces of answers, so that random ones get beyond the first line.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::sample::select(PIECES).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

const PIECES: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: /x\r\n",
    b"HTTP/1.0 503 \r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"ffffffffffffffff\r\n",
    b"5\r\nabcde\r\n0\r\n\r\n",
    b"Location: http://127.0.0.1:1/\r\n",
    b"Connection: upgrade\r\nUpgrade: x\r\n",
    b"\r\n",
    b"\r\n\r\n",
    // HTTP/2: settings, headers, data, trailers, goaway.
    b"\0\0\0\x04\0\0\0\0\0",
    b"\0\0\0\x04\x01\0\0\0\0",
    b"\0\0\x01\x01\x04\0\0\0\x01\x88",
    b"\0\0\x07\0\0\0\0\0\x01\0\0\0\0\x02\x08\x01",
    b"\0\0\x01\x01\x05\0\0\0\x01\x88",
    b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0",
];

fn checks() -> [Check; 3] {
    let host = || "127.0.0.1".to_owned();
    let http = |scheme| Check::Http(Http { scheme, host: host(), port: 1, path: "/".to_owned(), headers: Vec::new() });
    [http(Scheme::Http), http(Scheme::Https), Check::Grpc { host: host(), port: 1, service: String::new() }]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn a_look_at_anything_ends(pieces in prop::collection::vec(piece(), 0..12), hangs in any::<bool>()) {
        let answer = pieces.concat();
        let run = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a run time");
        run.block_on(async {
            for check in checks() {
                let dial = |_, _| async {
                    let (ours, mut theirs) = tokio::io::duplex(1 << 16);
                    let answer = answer.clone();
                    tokio::spawn(async move {
                        let _ = theirs.write_all(&answer).await;
                        if hangs {
                            tokio::time::sleep(Duration::from_secs(3600)).await;
                        }
                    });
                    Ok(ours)
                };
                let limit = Duration::from_secs(1);
                let looked = tokio::time::timeout(2 * limit, look_with(&check, limit, dial)).await;
                assert!(looked.is_ok(), "{check:?} does not end");
            }
        });
    }
}
