use rcgen::{CertificateParams, DnType, KeyPair};

use super::*;

fn pair(hosts: &[&str]) -> (String, String) {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(hosts).expect("names").self_signed(&key).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}

fn read(chain: &str, key: &str) -> Result<Certificate, Unusable> {
    let pem = Pem { chain: chain.as_bytes(), chain_name: "tls.crt", key: key.as_bytes(), key_name: "tls.key" };
    Certificate::read("web", pem)
}

#[test]
fn a_certificate_knows_its_hosts_and_its_time() {
    let (chain, key) = pair(&["Example.com", "*.example.org"]);
    let certificate = read(&chain, &key).expect("a certificate");
    assert_eq!(certificate.hosts, ["example.com", "*.example.org"]);
    assert!(certificate.is_valid(Timestamp::now()));
    assert!(!certificate.is_valid("1960-01-01T00:00:00Z".parse().expect("a time")));
}

#[test]
fn without_alternative_names_the_common_name_counts() {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Old.example.com");
    let chain = params.self_signed(&key).expect("a certificate").pem();
    let certificate = read(&chain, &key.serialize_pem()).expect("a certificate");
    assert!(certificate.hosts.contains(&"old.example.com".to_owned()), "{certificate:?}");
}

#[test]
fn what_cannot_be_used_says_why() {
    let (chain, key) = pair(&["a.example"]);
    let (_, other) = pair(&["b.example"]);
    let broken = chain.replacen('M', "!", 1);
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let cases = [
        ("", &*key, "there is no PEM certificate in tls.crt: nothing of that kind"),
        (&*key, &*key, "there is no PEM certificate in tls.crt: nothing of that kind"),
        (&*broken, &*key, "there is no PEM certificate in tls.crt: "),
        (garbage, &*key, "the certificate in tls.crt cannot be read: "),
        (&*chain, "", "there is no PEM private key in tls.key: nothing of that kind"),
        (&*chain, &*other, "the key in tls.key cannot be used: it is not the key of the certificate"),
    ];
    for (chain, key, expected) in cases {
        let said = read(chain, key).expect_err("it is not usable").to_string();
        assert!(said.starts_with(expected), "{said:?} is not {expected:?}");
    }
}

#[test]
fn a_certificate_does_not_print_its_key() {
    let (chain, key) = pair(&["a.example"]);
    let printed = format!("{:?}", read(&chain, &key).expect("a certificate"));
    assert!(printed.contains("a.example") && !printed.to_lowercase().contains("key"), "{printed}");
}
