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
