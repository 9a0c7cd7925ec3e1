use super::*;

const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue\n";

fn check(lines: &[&str], ports: Option<&[u16]>, expected: usize) {
    let text: String =
        lines.iter().enumerate().map(|(at, line)| format!("{at:4}: {line} 00000000:00000000\n")).collect();
    assert_eq!(count(&(HEAD.to_owned() + &text), ports), expected, "{lines:?}");
}

#[test]
fn connections_to_ports_that_are_listened_on_count() {
    let listens = "00000000:1F90 00000000:0000 0A";
    let served = "0200F40A:1F90 0100A8C0:A000 01";
    check(&[listens], None, 0);
    check(&[listens, served, served], None, 2);
    check(&[served], None, 0);
    check(&[served], Some(&[8080]), 1);
    check(&[served], Some(&[80]), 0);
}

#[test]
fn what_goes_out_or_stays_inside_or_has_ended_does_not() {
    let listens = "00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A";
    let out = "0200F40A:A000 0100A8C0:1F90 01";
    let inside = "0100007F:1F90 0100007F:A000 01";
    let inside6 = "00000000000000000000000001000000:1F90 00000000000000000000000001000000:A000 01";
    let mapped = "0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:A000 01";
    let closing = "0200F40A:1F90 0100A8C0:A001 08";
    check(&[listens, out, inside, inside6, mapped, closing], None, 0);
    check(&[listens, "0000000000000000FFFF00000200F40A:1F90 0000000000000000FFFF00000100A8C0:A000 01"], None, 1);
}

#[test]
fn a_port_that_is_listened_on_is_found_by_protocol_and_state() {
    let check = |ports: &[(&str, u16)], protocol: &str, state: &str, line: &str| {
        let ports: Vec<Port> = ports.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        listens(&ports, protocol, state, || format!("{HEAD}   0: {line} 00000000:00000000\n"))
    };
    let listener = "00000000:1F90 00000000:0000 0A";
    assert!(check(&[("TCP", 80), ("TCP", 8080)], "TCP", LISTENS, listener));
    assert!(!check(&[("TCP", 80), ("UDP", 8080)], "TCP", LISTENS, listener));
    assert!(!check(&[("TCP", 8080)], "TCP", LISTENS, "0200F40A:1F90 0100A8C0:A000 01"));
    assert!(check(&[("UDP", 53)], "UDP", UNCONNECTED, "00000000:0035 00000000:0000 07"));
    assert!(!check(&[("UDP", 53)], "UDP", UNCONNECTED, "0200F40A:0035 0100A8C0:A000 01"));
}

#[test]
fn ports_without_a_protocol_are_tcp_and_sctp_is_not_listed() {
    let ports = serde_json::json!([
        {"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}, {"containerPort": 9, "protocol": "SCTP"},
    ]);
    let declared = declared(&serde_json::json!({"ports": ports}));
    assert_eq!(declared, [("TCP".to_owned(), 80), ("UDP".to_owned(), 53)]);
}
