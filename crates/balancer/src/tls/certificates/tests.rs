use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::*;

const ARN: &str = "arn:aws:acm:us-east-1:123456789012:certificate/12345678-1234-1234-1234-123456789012";

fn pair(host: &str) -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new([host.to_owned()]).expect("a name");
    (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
}

fn secret(name: &str, kind: &str, (chain, key): &(String, String)) -> (Key, Arc<Secret>) {
    let mut secret = Secret { kind: kind.to_owned(), ..Secret::default() };
    secret.metadata.namespace = "shop".to_owned();
    secret.metadata.name = name.to_owned();
    secret.data =
        BTreeMap::from([("tls.crt", chain), ("tls.key", key)].map(|(part, text)| (part.into(), STANDARD.encode(text))));
    (Key::new("shop", name), Arc::new(secret))
}

fn annotated((key, secret): (Key, Arc<Secret>), with: &str) -> (Key, Arc<Secret>) {
    let mut secret = (*secret).clone();
    secret.metadata.annotations.insert(ANNOTATION.to_owned(), with.to_owned());
    (key, Arc::new(secret))
}

fn find(
    certificates: &Certificates,
    names: &str,
    secrets: &BTreeMap<Key, Arc<Secret>>,
    before: &[Arc<Certificate>],
) -> Found {
    certificates.find(Wanted { namespace: "shop", names, before }, secrets, Timestamp::now())
}

fn hosts(found: &Found) -> Vec<&str> {
    found.certificates.iter().flat_map(|certificate| &certificate.hosts).map(String::as_str).collect()
}

fn said(found: &Found) -> Vec<String> {
    found.mistakes.iter().map(Mistake::to_string).collect()
}

#[test]
fn a_name_is_looked_up_in_the_configuration_then_among_secrets() {
    let place = |namespace: Option<&str>, name: &str| Place::Secret {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    };
    let certificates = Certificates::new(BTreeMap::from([
        ("mapped".to_owned(), place(Some("shop"), "one")),
        (ARN.to_owned(), place(None, "two")),
    ]));
    let secrets = BTreeMap::from([
        secret("one", SECRET_TYPE, &pair("one.example")),
        secret("two", SECRET_TYPE, &pair("two.example")),
        annotated(secret("three", SECRET_TYPE, &pair("three.example")), "arn:aws:iam::1:server-certificate/x"),
    ]);
    let cases = [
        ("mapped", vec!["one.example"]),
        (ARN, vec!["two.example"]),
        ("one", vec!["one.example"]),
        ("shop/two", vec!["two.example"]),
        ("arn:aws:iam::1:server-certificate/x", vec!["three.example"]),
        (" two , one,", vec!["two.example", "one.example"]),
    ];
    for (names, expected) in cases {
        let found = find(&certificates, names, &secrets, &[]);
        assert_eq!(hosts(&found), expected, "{names}");
        assert_eq!(said(&found), Vec::<String>::new(), "{names}");
    }
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    let certificates = Certificates::new(BTreeMap::from([
        ("gone".to_owned(), Place::Secret { namespace: Some("infra".to_owned()), name: "tls".to_owned() }),
        ("files".to_owned(), Place::Files { chain: "/no/such/file.crt".into(), key: "/no/such/file.key".into() }),
    ]));
    let (mut key, opaque) = secret("elsewhere", SECRET_TYPE, &pair("e.example"));
    key.namespace = "other".into();
    let mut bad = (*secret("bad", SECRET_TYPE, &pair("b.example")).1).clone();
    bad.data.insert("tls.crt".to_owned(), "%%%".to_owned());
    let secrets = BTreeMap::from([
        secret("opaque", "Opaque", &pair("o.example")),
        (Key::new("shop", "bad"), Arc::new(bad)),
        (key, opaque),
    ]);
    let cases = [
        ("gone", "there is no Secret infra/tls of type kubernetes.io/tls"),
        ("files", "/no/such/file.crt: No such file or directory"),
        ("opaque", "Secret shop/opaque is of type \"Opaque\", not kubernetes.io/tls"),
        ("bad", "Secret shop/bad has data that is not base64"),
        ("other/elsewhere", "Secret other/elsewhere is in another namespace than the Service"),
        ("nobody", "it is neither in the configuration nor a Secret of type kubernetes.io/tls in namespace shop"),
    ];
    for (name, expected) in cases {
        let found = find(&certificates, name, &secrets, &[]);
        assert_eq!(found.certificates, [], "{name}");
        let said = said(&found).concat();
        assert!(said.starts_with(&format!("certificate {name:?}: {expected}")), "{said}");
    }
}

#[test]
fn a_bad_successor_leaves_the_old_one_in_service() {
    let none = Certificates::default();
    let good = pair("a.example");
    let secrets = BTreeMap::from([secret("web", SECRET_TYPE, &good)]);
    let first = find(&none, "web", &secrets, &[]);
    let same = find(&none, "web", &secrets, &first.certificates);
    assert!(Arc::ptr_eq(&first.certificates[0], &same.certificates[0]), "what did not change is the same");

    let mixed = BTreeMap::from([secret("web", SECRET_TYPE, &(good.0.clone(), pair("b.example").1))]);
    let kept = find(&none, "web", &mixed, &first.certificates);
    assert_eq!(kept.certificates, first.certificates);
    let said = said(&kept).concat();
    assert!(said.ends_with("it is not the key of the certificate; the one in service is kept"), "{said}");

    let renewed = BTreeMap::from([secret("web", SECRET_TYPE, &pair("a.example"))]);
    let renewed = find(&none, "web", &renewed, &kept.certificates);
    assert!(renewed.mistakes.is_empty() && renewed.certificates != first.certificates);
}

#[test]
fn an_expired_certificate_is_shown_and_complained_about() {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(["old.example".to_owned()]).expect("a name");
    params.not_after = date_time_ymd(2001, 1, 1);
    let expired = (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem());
    let found = find(&Certificates::default(), "web", &BTreeMap::from([secret("web", SECRET_TYPE, &expired)]), &[]);
    assert_eq!(hosts(&found), ["old.example"]);
    assert!(said(&found).concat().contains("2001-01-01T00:00:00Z only; clients will refuse it"), "{:?}", said(&found));
}

#[test]
fn files_are_read_and_their_change_is_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let (chain, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    let write = |(certificate, private): (String, String)| {
        fs::write(&chain, certificate).expect("written");
        fs::write(&key, private).expect("written");
    };
    write(pair("a.example"));
    let place = Place::Files { chain: chain.clone(), key: key.clone() };
    let certificates = Certificates::new(BTreeMap::from([("web".to_owned(), place)]));
    let (first, state) = (find(&certificates, "web", &BTreeMap::new(), &[]), certificates.files());
    assert_eq!(hosts(&first), ["a.example"]);
    assert_eq!(certificates.files(), state);
    write(pair("longer-name.example"));
    assert_ne!(certificates.files(), state);
    let second = find(&certificates, "web", &BTreeMap::new(), &first.certificates);
    assert_eq!(hosts(&second), ["longer-name.example"]);
}
