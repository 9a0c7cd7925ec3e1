use std::net::SocketAddr;
use std::time::Instant;

use fairlead_zone::message::{Edns, Head, Reading};

use super::*;
use crate::ask::Transport;

#[test]
fn a_question_is_told_as_coredns_tells_it() {
    let edns = Edns { size: 4096, dnssec_ok: false };
    let bytes = message::query(29008, &"example.org.".parse().expect("a name"), words::A, Some(edns));
    let Reading::Query(query) = message::read(&bytes) else { panic!("it is a query") };
    let from: SocketAddr = "[::1]:50759".parse().expect("an address");
    let came = Came { bytes: &bytes, from, local: from, transport: Transport::Udp, at: Instant::now() };
    let head = Head { recursion_available: true, ..Head::default() };
    let (reply, mut out) = (Reply { head, ..Reply::default() }, Vec::new());
    reply.write(&query, 512, &mut out);
    let told = Told { came: &came, query: &query, reply: &reply, bytes: &out, took: Duration::from_nanos(37_990_251) };
    let common = line(crate::corefile::COMMON, &told);
    assert_eq!(common, "[::1]:50759 - 29008 \"A IN example.org. udp 40 false 4096\" NOERROR qr,rd,ra 40 0.037990251s");
    assert_eq!(line("{remote} {unknown} {", &told), "[::1] - {");
    assert_eq!(classify(&reply), Class::Denial);
}

#[tokio::test(start_paused = true)]
async fn errors_of_a_cause_are_logged_once_a_minute_with_their_number() {
    let (lines, written) = sync_channel(LINES);
    let logger = Logger { lines, waiting: Arc::default() };
    let errors = Errors::default();
    for number in 0..5000 {
        let ask = Ask::sample(&format!("n{number}.example."), words::A);
        logger.error(&errors, &ask, Rcode::SERV_FAIL, "192.0.2.53:53: i/o timeout");
    }
    logger.error(&errors, &Ask::sample("other.example.", words::A), Rcode::SERV_FAIL, "192.0.2.54:53: i/o timeout");
    tokio::time::sleep(Duration::from_secs(61)).await;
    logger.error(&errors, &Ask::sample("later.example.", words::A), Rcode::SERV_FAIL, "192.0.2.53:53: i/o timeout");
    let lines: Vec<String> = written.try_iter().collect();
    assert_eq!(
        lines,
        [
            "[ERROR] plugin/errors: 2 n0.example. A: 192.0.2.53:53: i/o timeout",
            "[ERROR] plugin/errors: 2 other.example. A: 192.0.2.54:53: i/o timeout",
            "[ERROR] plugin/errors: 5000 errors like '192.0.2.53:53: i/o timeout' occurred in last 60s",
            "[ERROR] plugin/errors: 2 later.example. A: 192.0.2.53:53: i/o timeout",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn causes_without_end_are_counted_together() {
    let (lines, written) = sync_channel(LINES);
    let logger = Logger { lines, waiting: Arc::default() };
    let ask = Ask::sample("one.example.", words::A);
    for number in 0..1000 {
        logger.error(&Errors::default(), &ask, Rcode::SERV_FAIL, &format!("cause {number}"));
    }
    assert_eq!(written.try_iter().count(), CAUSES + 1);
    tokio::time::sleep(Duration::from_secs(61)).await;
    let lines: Vec<String> = written.try_iter().collect();
    assert_eq!(lines, ["[ERROR] plugin/errors: 936 errors like 'other causes' occurred in last 60s"]);
}
