use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};

use super::super::certificate::Pem;
use super::*;

fn certificate(hosts: &[&str]) -> Arc<Certificate> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
    let params =
        CertificateParams::new(hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>()).expect("names");
    let (chain, key) = (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem());
    let pem = Pem { chain: chain.as_bytes(), chain_name: "", key: key.as_bytes(), key_name: "" };
    Arc::new(Certificate::read("", pem).expect("a certificate"))
}

#[test]
fn a_host_gets_its_own_certificate_then_one_with_a_star_then_the_first() {
    let all = [certificate(&["default.example"]), certificate(&["*.example.com"]), certificate(&["www.example.com"])];
    let shown = Shown::new(&all);
    let cases = [
        (Some("www.example.com"), 2),
        (Some("WWW.Example.com"), 2),
        (Some("other.example.com"), 1),
        (Some("a.b.example.com"), 0),
        (Some("example.com"), 0),
        (Some("nobody.example"), 0),
        (Some("localhost"), 0),
        (None, 0),
    ];
    for (host, expected) in cases {
        let first = shown.candidates(host).next().expect("one is shown");
        assert!(Arc::ptr_eq(first, &all[expected].key), "{host:?}");
    }
}
