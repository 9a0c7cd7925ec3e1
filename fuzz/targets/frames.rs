//! Can any frame of a LAN break the reading of ARP and neighbour discovery, or be answered with something that cannot be read?
#![no_main]

use fairlead_kernel::packet::arp::Arp;
use fairlead_kernel::packet::ndp::Ndp;
use libfuzzer_sys::fuzz_target;

const OURS: [u8; 6] = [2, 0, 0, 0, 0, 1];

fuzz_target!(|frame: &[u8]| {
    if let Some(arp) = Arp::read(frame) {
        assert_eq!(Arp::read(&arp.frame(OURS)), Some(arp));
        let answer = arp.answer(OURS);
        assert_eq!(Arp::read(&answer.frame(arp.hardware)), Some(answer));
    }
    match Ndp::read(frame) {
        Some(Ndp::Solicitation(asked)) => {
            let (answer, to) = asked.answer(OURS);
            assert_eq!(Ndp::read(&answer.frame(to)), Some(Ndp::Advertisement(answer)));
        }
        Some(Ndp::Advertisement(said)) => {
            assert_eq!(Ndp::read(&said.frame(OURS)), Some(Ndp::Advertisement(said)));
        }
        None => {}
    }
});
