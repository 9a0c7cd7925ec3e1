//! What is removed from the kernel of a machine comes back while `fairlead` runs: the link with the
//! addresses of cluster DNS.

use std::net::UdpSocket;
use std::time::Duration;

use super::machine::{Machine, machine};

/// The address of cluster DNS.
const DNS: &str = "10.96.0.10:53";

#[test]
fn cluster_dns_answers_again_after_its_link_or_its_addresses_were_removed() {
    let test = "cluster_dns_answers_again_after_its_link_or_its_addresses_were_removed";
    let Some(machine) = machine(test, &[]) else { return };
    machine.wait_ready();
    machine.wait("cluster DNS answers", || answers(&machine));
    for damage in [
        "ip link del fl-node0",
        "ip link set fl-node0 down",
        "ip addr del 10.96.0.10/32 dev fl-node0",
        "ip addr flush dev fl-node0",
    ] {
        machine.shell(damage).fine();
        machine.wait(damage, || {
            let link = machine.shell("ip -o addr show dev fl-node0 up");
            link.code == 0 && link.out.contains("10.96.0.10/32") && answers(&machine)
        });
    }
    // An address of another program on the link is no damage.
    machine.shell("ip addr add 192.0.2.7/32 dev fl-node0").fine();
    machine.shell("ip addr del 10.96.0.10/32 dev fl-node0").fine();
    machine.wait("cluster DNS answers beside another address", || answers(&machine));
    assert!(machine.shell("ip -o addr show dev fl-node0").out.contains("192.0.2.7"), "{}", machine.log());
}

/// Asks cluster DNS for the address of the API.
fn answers(machine: &Machine) -> bool {
    let ask = || -> std::io::Result<bool> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.set_read_timeout(Some(Duration::from_millis(300)))?;
        socket.connect(DNS)?;
        // RFC 1035, 4.1: the header, one question, type A, class IN.
        let mut question = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in ["kubernetes", "default", "svc", "cluster", "local", ""] {
            question.push(u8::try_from(label.len()).unwrap());
            question.extend_from_slice(label.as_bytes());
        }
        question.extend_from_slice(&[0, 1, 0, 1]);
        socket.send(&question)?;
        let mut answer = [0; 512];
        let length = socket.recv(&mut answer)?;
        // No error, one answer.
        Ok(length > 12 && answer[3] & 15 == 0 && answer[7] == 1)
    };
    machine.namespace.run(|| ask().unwrap_or(false)).unwrap()
}
