//! Which versions and suites of TLS does a predefined policy of AWS allow, and which of them are spoken here?
//! Pure: the tables of Classic and Network Load Balancers as data, and what of them rustls has.

use std::fmt;

use rustls::crypto::ring::cipher_suite as suites;
use rustls::{SupportedCipherSuite, SupportedProtocolVersion, version};

#[cfg(test)]
mod tests;

/// A negotiation policy, as AWS documents it.
#[derive(Debug, PartialEq, Eq)]
pub struct Policy {
    /// As the annotation `aws-load-balancer-ssl-negotiation-policy` names it.
    pub name: &'static str,
    /// The versions it allows.
    pub versions: &'static [Version],
    /// The suites it allows by OpenSSL's names, in groups.
    groups: &'static [&'static [&'static str]],
    /// Whether it offers key exchanges that are safe from quantum computers.
    quantum: bool,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.0.
    Tls10,
    /// TLS 1.1.
    Tls11,
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// What of a policy is spoken, in the order of preference.
#[derive(Debug, Clone)]
pub struct Spoken {
    /// Versions.
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// Suites.
    pub suites: Vec<SupportedCipherSuite>,
}

/// What of a policy is not spoken, because it is not safe or not built: clients that need it cannot connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unspoken {
    /// Versions.
    pub versions: Vec<Version>,
    /// Suites by OpenSSL's names.
    pub suites: Vec<&'static str>,
    /// Hybrid key exchange with ML-KEM.
    pub quantum: bool,
}

/// The policy of this name; the empty name is ours: TLS 1.2 and 1.3 with every suite there is.
pub fn find(name: &str) -> Option<&'static Policy> {
    if name.is_empty() { Some(&OURS) } else { PREDEFINED.iter().find(|policy| policy.name == name) }
}

/// The names the annotation may have.
pub fn names() -> impl Iterator<Item = &'static str> {
    PREDEFINED.iter().map(|policy| policy.name)
}

impl Policy {
    /// Every suite it allows, by OpenSSL's names.
    pub fn suites(&self) -> impl Iterator<Item = &'static str> {
        self.groups.iter().flat_map(|group| group.iter().copied())
    }

    /// What of it is spoken; `None`: nothing, as only versions that nobody should speak are in it.
    pub fn spoken(&self) -> Option<Spoken> {
        let allows = |name: &str| self.suites().any(|suite| suite == name);
        let versions: Vec<_> = self.versions.iter().rev().filter_map(|version| version.spoken()).collect();
        let in_versions = |suite: &SupportedCipherSuite| versions.contains(&suite.version());
        let suites: Vec<_> = SPOKEN.iter().filter(|(name, _)| allows(name)).map(|(_, suite)| *suite).collect();
        let suites: Vec<_> = suites.into_iter().filter(in_versions).collect();
        (!suites.is_empty()).then_some(Spoken { versions, suites })
    }

    /// What of it is not spoken; `None`: it is spoken whole.
    pub fn unspoken(&self) -> Option<Unspoken> {
        let versions: Vec<_> = self.versions.iter().filter(|version| version.spoken().is_none()).copied().collect();
        let suites: Vec<_> = self.suites().filter(|name| SPOKEN.iter().all(|(spoken, _)| spoken != name)).collect();
        let whole = versions.is_empty() && suites.is_empty() && !self.quantum;
        (!whole).then_some(Unspoken { versions, suites, quantum: self.quantum })
    }
}

impl Version {
    fn spoken(self) -> Option<&'static SupportedProtocolVersion> {
        match self {
            Version::Tls10 | Version::Tls11 => None,
            Version::Tls12 => Some(&version::TLS12),
            Version::Tls13 => Some(&version::TLS13),
        }
    }
}

/// `TLS 1.2`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::Tls10 => "TLS 1.0",
            Version::Tls11 => "TLS 1.1",
            Version::Tls12 => "TLS 1.2",
            Version::Tls13 => "TLS 1.3",
        })
    }
}

/// `the policy also has TLS 1.1, suite AES128-SHA, which is not spoken here`.
impl fmt::Display for Unspoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self.versions.iter().map(Version::to_string).collect();
        match &self.suites[..] {
            [] => {}
            [one] => parts.push(format!("suite {one}")),
            many => parts.push(format!("suites {}", many.join(" "))),
        }
        if self.quantum {
            parts.push("key exchange with ML-KEM".to_owned());
        }
        write!(f, "the policy also has {}, which is not spoken here", parts.join(", "))
    }
}

/// OpenSSL's name of a suite, which logs of AWS use; the standard's name if that has none.
pub(super) fn name_of(suite: SupportedCipherSuite) -> &'static str {
    let known = SPOKEN.iter().find(|(_, known)| known.suite() == suite.suite()).map(|(name, _)| *name);
    known.or(suite.suite().as_str()).unwrap_or("-")
}

/// What is spoken. The order is that of AWS' tables, where the server's order counts: short keys first, which cost less.
const SPOKEN: [(&str, SupportedCipherSuite); 9] = [
    ("TLS_AES_128_GCM_SHA256", suites::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", suites::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", suites::TLS13_CHACHA20_POLY1305_SHA256),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", suites::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-AES128-GCM-SHA256", suites::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", suites::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES256-GCM-SHA384", suites::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", suites::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", suites::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

const TLS13: &[&str] = &["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
const TLS13_FIPS: &[&str] = &["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"];
const GCM: &[&str] = &[
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
];
const CHACHA: &[&str] = &["ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"];
const CBC: &[&str] =
    &["ECDHE-ECDSA-AES128-SHA256", "ECDHE-RSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA384", "ECDHE-RSA-AES256-SHA384"];
const CBC_SHA1: &[&str] =
    &["ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA", "ECDHE-ECDSA-AES256-SHA"];
const RSA: &[&str] = &["AES128-GCM-SHA256", "AES128-SHA256", "AES256-GCM-SHA384", "AES256-SHA256"];
const RSA_SHA1: &[&str] = &["AES128-SHA", "AES256-SHA"];
const DHE: &[&str] = &["DHE-RSA-AES128-SHA", "DHE-DSS-AES128-SHA"];
const TRIPLE_DES: &[&str] = &["DES-CBC3-SHA"];
/// The suites of TLS 1.0 in policies from before TLS 1.2.
const OLD: &[&str] = &["DHE-RSA-AES128-SHA", "AES128-SHA", "AES256-SHA", "DES-CBC3-SHA", "RC4-SHA"];

const ONLY_10: &[Version] = &[Version::Tls10];
const FROM_10: &[Version] = &[Version::Tls10, Version::Tls11, Version::Tls12];
const FROM_11: &[Version] = &[Version::Tls11, Version::Tls12];
const ONLY_12: &[Version] = &[Version::Tls12];
const ONLY_13: &[Version] = &[Version::Tls13];
const FROM_10_TO_13: &[Version] = &[Version::Tls10, Version::Tls11, Version::Tls12, Version::Tls13];
const FROM_11_TO_13: &[Version] = &[Version::Tls11, Version::Tls12, Version::Tls13];
const FROM_12_TO_13: &[Version] = &[Version::Tls12, Version::Tls13];

const OURS: Policy = policy("", FROM_12_TO_13, &[TLS13, GCM, CHACHA]);

const fn policy(
    name: &'static str,
    versions: &'static [Version],
    groups: &'static [&'static [&'static str]],
) -> Policy {
    Policy { name, versions, groups, quantum: false }
}

const fn quantum(
    name: &'static str,
    versions: &'static [Version],
    groups: &'static [&'static [&'static str]],
) -> Policy {
    Policy { name, versions, groups, quantum: true }
}

/// The policies of Classic Load Balancers and of those that came later, which Network Load Balancers have.
/// <https://docs.aws.amazon.com/elasticloadbalancing/latest/classic/elb-security-policy-table.html>,
/// <https://docs.aws.amazon.com/elasticloadbalancing/latest/network/describe-ssl-policies.html>
#[rustfmt::skip]
const PREDEFINED: &[Policy] = &[
    policy("ELBSecurityPolicy-2016-08", FROM_10, &[GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    policy("ELBSecurityPolicy-TLS-1-2-2017-01", ONLY_12, &[GCM, CBC, RSA]),
    policy("ELBSecurityPolicy-TLS-1-1-2017-01", FROM_11, &[GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    policy("ELBSecurityPolicy-TLS-1-0-2015-04", FROM_10, &[GCM, CBC, CBC_SHA1, RSA, RSA_SHA1, TRIPLE_DES]),
    policy("ELBSecurityPolicy-2015-05", FROM_10, &[GCM, CBC, CBC_SHA1, RSA, RSA_SHA1, TRIPLE_DES]),
    policy("ELBSecurityPolicy-2015-03", FROM_10, &[GCM, CBC, CBC_SHA1, RSA, RSA_SHA1, DHE, TRIPLE_DES]),
    policy("ELBSecurityPolicy-2015-02", FROM_10, &[GCM, CBC, CBC_SHA1, RSA, RSA_SHA1, DHE]),
    policy("ELBSecurityPolicy-2014-10", FROM_10, &[GCM, CBC, CBC_SHA1, RSA, RSA_SHA1, DHE]),
    policy("ELBSecurityPolicy-2014-01", FROM_10, &[GCM, CBC, CBC_SHA1, RSA, RSA_SHA1, DHE]),
    policy("ELBSecurityPolicy-2011-08", ONLY_10, &[OLD]),
    policy("ELBSample-ELBDefaultNegotiationPolicy", ONLY_10, &[OLD]),
    policy("ELBSample-ELBDefaultCipherPolicy", ONLY_10, &[OLD]),
    policy("ELBSample-OpenSSLDefaultNegotiationPolicy", ONLY_10, &[OLD]),
    policy("ELBSample-OpenSSLDefaultCipherPolicy", ONLY_10, &[OLD]),
    policy("ELBSecurityPolicy-TLS-1-2-Ext-2018-06", ONLY_12, &[GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    policy("ELBSecurityPolicy-FS-2018-06", FROM_10, &[GCM, CBC, CBC_SHA1]),
    policy("ELBSecurityPolicy-FS-1-1-2019-08", FROM_11, &[GCM, CBC, CBC_SHA1]),
    policy("ELBSecurityPolicy-FS-1-2-2019-08", ONLY_12, &[GCM, CBC, CBC_SHA1]),
    policy("ELBSecurityPolicy-FS-1-2-Res-2019-08", ONLY_12, &[GCM, CBC]),
    policy("ELBSecurityPolicy-FS-1-2-Res-2020-10", ONLY_12, &[GCM]),
    policy("ELBSecurityPolicy-TLS13-1-3-2021-06", ONLY_13, &[TLS13]),
    policy("ELBSecurityPolicy-TLS13-1-2-2021-06", FROM_12_TO_13, &[TLS13, GCM, CBC]),
    policy("ELBSecurityPolicy-TLS13-1-2-Res-2021-06", FROM_12_TO_13, &[TLS13, GCM]),
    policy("ELBSecurityPolicy-TLS13-1-2-Ext1-2021-06", FROM_12_TO_13, &[TLS13, GCM, CBC, RSA]),
    policy("ELBSecurityPolicy-TLS13-1-2-Ext2-2021-06", FROM_12_TO_13, &[TLS13, GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    policy("ELBSecurityPolicy-TLS13-1-1-2021-06", FROM_11_TO_13, &[TLS13, GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    policy("ELBSecurityPolicy-TLS13-1-0-2021-06", FROM_10_TO_13, &[TLS13, GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    policy("ELBSecurityPolicy-TLS13-1-3-FIPS-2023-04", ONLY_13, &[TLS13_FIPS]),
    policy("ELBSecurityPolicy-TLS13-1-2-FIPS-2023-04", FROM_12_TO_13, &[TLS13_FIPS, GCM, CBC]),
    policy("ELBSecurityPolicy-TLS13-1-2-Res-FIPS-2023-04", FROM_12_TO_13, &[TLS13_FIPS, GCM]),
    policy("ELBSecurityPolicy-TLS13-1-2-Ext0-FIPS-2023-04", FROM_12_TO_13, &[TLS13_FIPS, GCM, CBC, CBC_SHA1]),
    policy("ELBSecurityPolicy-TLS13-1-2-Ext1-FIPS-2023-04", FROM_12_TO_13, &[TLS13_FIPS, GCM, CBC, RSA]),
    policy("ELBSecurityPolicy-TLS13-1-2-Ext2-FIPS-2023-04", FROM_12_TO_13, &[TLS13_FIPS, GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    policy("ELBSecurityPolicy-TLS13-1-1-FIPS-2023-04", FROM_11_TO_13, &[TLS13_FIPS, GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    policy("ELBSecurityPolicy-TLS13-1-0-FIPS-2023-04", FROM_10_TO_13, &[TLS13_FIPS, GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    quantum("ELBSecurityPolicy-TLS13-1-3-PQ-2025-09", ONLY_13, &[TLS13]),
    quantum("ELBSecurityPolicy-TLS13-1-2-PQ-2025-09", FROM_12_TO_13, &[TLS13, GCM, CBC]),
    quantum("ELBSecurityPolicy-TLS13-1-2-Res-PQ-2025-09", FROM_12_TO_13, &[TLS13, GCM]),
    quantum("ELBSecurityPolicy-TLS13-1-2-Ext1-PQ-2025-09", FROM_12_TO_13, &[TLS13, GCM, CBC, RSA]),
    quantum("ELBSecurityPolicy-TLS13-1-2-Ext2-PQ-2025-09", FROM_12_TO_13, &[TLS13, GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    quantum("ELBSecurityPolicy-TLS13-1-0-PQ-2025-09", FROM_10_TO_13, &[TLS13, GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    quantum("ELBSecurityPolicy-TLS13-1-3-FIPS-PQ-2025-09", ONLY_13, &[TLS13_FIPS]),
    quantum("ELBSecurityPolicy-TLS13-1-2-FIPS-PQ-2025-09", FROM_12_TO_13, &[TLS13_FIPS, GCM, CBC]),
    quantum("ELBSecurityPolicy-TLS13-1-2-Res-FIPS-PQ-2025-09", FROM_12_TO_13, &[TLS13_FIPS, GCM]),
    quantum("ELBSecurityPolicy-TLS13-1-2-Ext0-FIPS-PQ-2025-09", FROM_12_TO_13, &[TLS13_FIPS, GCM, CBC, CBC_SHA1]),
    quantum("ELBSecurityPolicy-TLS13-1-2-Ext1-FIPS-PQ-2025-09", FROM_12_TO_13, &[TLS13_FIPS, GCM, CBC, RSA]),
    quantum("ELBSecurityPolicy-TLS13-1-2-Ext2-FIPS-PQ-2025-09", FROM_12_TO_13, &[TLS13_FIPS, GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
    quantum("ELBSecurityPolicy-TLS13-1-0-FIPS-PQ-2025-09", FROM_10_TO_13, &[TLS13_FIPS, GCM, CBC, CBC_SHA1, RSA, RSA_SHA1]),
];
