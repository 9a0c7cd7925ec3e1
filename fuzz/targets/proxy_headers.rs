//! Can any bytes break the reading of PROXY headers, or be read in two ways?
#![no_main]

use fairlead_balancer::proxy_header::{self, Header, LONGEST, Opening, Suspicion};
use fairlead_balancer::spec::ProxyVersion;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(Some((header, length))) = proxy_header::parse(input) else { return };
    assert!(length <= input.len() && length <= LONGEST);
    // What follows does not matter, and no part of it is a header already.
    assert_eq!(proxy_header::parse(&input[..length]), Ok(Some((header, length))));
    for end in 0..length {
        assert_eq!(proxy_header::parse(&input[..end]), Ok(None));
    }
    // Who may not send it is found out, in whatever pieces it comes.
    for size in [1, 2, 5, 7, 11, 12, 13] {
        let mut suspicion = Suspicion::default();
        let mut heard = input[..length].chunks(size).map(|piece| suspicion.hear(piece));
        assert_eq!(heard.find(|opening| *opening != Opening::Undecided), Some(Opening::Header));
    }
    let Header::Proxied { client, local } = header else { return };
    for version in [ProxyVersion::V1, ProxyVersion::V2] {
        let mut out = Vec::new();
        proxy_header::write(version, client, local, None, &mut out);
        assert_eq!(proxy_header::parse(&out), Ok(Some((header, out.len()))));
    }
});
