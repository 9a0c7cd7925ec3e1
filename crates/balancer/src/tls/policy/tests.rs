use super::*;

fn spoken(name: &str) -> Option<(Vec<&'static str>, Vec<&'static str>)> {
    let spoken = find(name).expect("a policy").spoken()?;
    let version = |one: &&'static SupportedProtocolVersion| if **one == version::TLS13 { "1.3" } else { "1.2" };
    Some((spoken.versions.iter().map(version).collect(), spoken.suites.iter().map(|one| name_of(*one)).collect()))
}

#[track_caller]
fn check(name: &str, versions: &[&str], suites: &[&[&str]]) {
    let (found, names) = spoken(name).expect("something is spoken");
    assert_eq!(found, versions, "{name}");
    assert_eq!(names, suites.concat(), "{name}");
}

#[test]
fn a_policy_is_spoken_as_far_as_it_is_safe() {
    const AES: [&str; 4] = [
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384",
    ];
    check("ELBSecurityPolicy-TLS-1-2-2017-01", &["1.2"], &[&AES]);
    check("ELBSecurityPolicy-2016-08", &["1.2"], &[&AES]);
    check("ELBSecurityPolicy-FS-1-2-Res-2020-10", &["1.2"], &[&AES]);
    check("ELBSecurityPolicy-TLS13-1-3-2021-06", &["1.3"], &[TLS13]);
    check("ELBSecurityPolicy-TLS13-1-0-2021-06", &["1.3", "1.2"], &[TLS13, &AES]);
    check("ELBSecurityPolicy-TLS13-1-2-FIPS-2023-04", &["1.3", "1.2"], &[TLS13_FIPS, &AES]);
    check("", &["1.3", "1.2"], &[TLS13, &AES, CHACHA]);
}

#[test]
fn a_policy_of_tls_1_0_alone_is_not_spoken() {
    assert_eq!(spoken("ELBSecurityPolicy-2011-08"), None);
    assert_eq!(spoken("ELBSample-OpenSSLDefaultCipherPolicy"), None);
}

#[test]
fn what_is_not_spoken_is_said() {
    let said = |name: &str| find(name).and_then(Policy::unspoken).map(|unspoken| unspoken.to_string());
    assert_eq!(said(""), None);
    assert_eq!(said("ELBSecurityPolicy-TLS13-1-2-Res-2021-06"), None);
    let cbc = CBC.join(" ");
    assert_eq!(
        said("ELBSecurityPolicy-FS-1-2-Res-2019-08"),
        Some(format!("the policy also has suites {cbc}, which is not spoken here"))
    );
    let quantum = said("ELBSecurityPolicy-TLS13-1-3-PQ-2025-09");
    assert_eq!(quantum.as_deref(), Some("the policy also has key exchange with ML-KEM, which is not spoken here"));
    let old = said("ELBSecurityPolicy-2016-08").expect("much of it");
    assert!(old.starts_with("the policy also has TLS 1.0, TLS 1.1, suites "), "{old}");
    assert!(old.contains("AES128-SHA256"), "{old}");
}

#[test]
fn names_are_those_of_the_annotation_and_no_other() {
    assert!(names().all(|name| find(name).is_some_and(|policy| policy.name == name)));
    let mut sorted: Vec<_> = names().collect();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), names().count(), "a name stands once");
    assert_eq!(find("ELBSecurityPolicy-TLS-1-2-2017-1"), None);
    assert_eq!(find("elbsecuritypolicy-2016-08"), None);
}
