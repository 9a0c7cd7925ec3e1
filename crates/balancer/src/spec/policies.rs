//! The predefined policies of AWS' load balancers: which versions and suites of TLS each stands for, and what of it is spoken
//! here. Facts of AWS' documentation (classic: elb-security-policy-table; network: describe-ssl-policies).

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Not spoken here.
    V10,
    /// Not spoken here.
    V11,
    /// TLS 1.2.
    V12,
    /// TLS 1.3.
    V13,
}

/// A suite that is spoken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// ECDHE-ECDSA-AES128-GCM-SHA256, of TLS 1.2.
    EcdheEcdsaAes128Gcm,
    /// ECDHE-RSA-AES128-GCM-SHA256, of TLS 1.2.
    EcdheRsaAes128Gcm,
    /// ECDHE-ECDSA-AES256-GCM-SHA384, of TLS 1.2.
    EcdheEcdsaAes256Gcm,
    /// ECDHE-RSA-AES256-GCM-SHA384, of TLS 1.2.
    EcdheRsaAes256Gcm,
    /// `TLS_AES_128_GCM_SHA256`, of TLS 1.3.
    Aes128Gcm,
    /// `TLS_AES_256_GCM_SHA384`, of TLS 1.3.
    Aes256Gcm,
    /// `TLS_CHACHA20_POLY1305_SHA256`, of TLS 1.3.
    Chacha20,
}

/// A predefined policy.
#[derive(Debug, PartialEq, Eq)]
pub struct Policy {
    /// As AWS calls it.
    pub name: &'static str,
    /// The lowest version; below 1.2 it is served from 1.2 on.
    pub lowest: Version,
    /// The highest version.
    pub highest: Version,
    /// What of it is spoken here, the preferred first.
    pub suites: &'static [Suite],
    /// What of its suites is not.
    pub lacks: Lacks,
}

/// Suites and key exchanges of a policy that are not spoken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacks {
    /// All are spoken.
    Nothing,
    /// Suites with CBC, or without forward secrecy.
    OldSuites,
    /// Post-quantum key exchange; the others of the policy are offered.
    PostQuantum,
}

/// What all names begin with.
pub const PREFIX: &str = "ELBSecurityPolicy-";

/// The suites of TLS 1.2 that the policies have in common and that are spoken here, in AWS' order.
const TLS12: &[Suite] =
    &[Suite::EcdheEcdsaAes128Gcm, Suite::EcdheRsaAes128Gcm, Suite::EcdheEcdsaAes256Gcm, Suite::EcdheRsaAes256Gcm];
const TLS13: &[Suite] = &[Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::Chacha20];
const TLS13_AND_12: &[Suite] = &[
    Suite::Aes128Gcm,
    Suite::Aes256Gcm,
    Suite::Chacha20,
    Suite::EcdheEcdsaAes128Gcm,
    Suite::EcdheRsaAes128Gcm,
    Suite::EcdheEcdsaAes256Gcm,
    Suite::EcdheRsaAes256Gcm,
];

const fn tls12(name: &'static str, lowest: Version, lacks: Lacks) -> Policy {
    Policy { name, lowest, highest: Version::V12, suites: TLS12, lacks }
}

const fn tls13(name: &'static str, lowest: Version, lacks: Lacks) -> Policy {
    let suites = if matches!(lowest, Version::V13) { TLS13 } else { TLS13_AND_12 };
    Policy { name, lowest, highest: Version::V13, suites, lacks }
}

/// All policies that can be served. Those for FIPS are not among them, since no library here is validated for it; nor is
/// `ELBSecurityPolicy-2011-08`, which has nothing that is spoken here.
pub static POLICIES: &[Policy] = &[
    tls12("ELBSecurityPolicy-2016-08", Version::V10, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-TLS-1-2-2017-01", Version::V12, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-TLS-1-1-2017-01", Version::V11, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-2015-05", Version::V10, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-2015-03", Version::V10, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-2015-02", Version::V10, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-2014-10", Version::V10, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-2014-01", Version::V10, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-TLS-1-0-2015-04", Version::V10, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-TLS-1-2-Ext-2018-06", Version::V12, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-FS-2018-06", Version::V10, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-FS-1-1-2019-08", Version::V11, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-FS-1-2-2019-08", Version::V12, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-FS-1-2-Res-2019-08", Version::V12, Lacks::OldSuites),
    tls12("ELBSecurityPolicy-FS-1-2-Res-2020-10", Version::V12, Lacks::Nothing),
    tls13("ELBSecurityPolicy-TLS13-1-0-2021-06", Version::V10, Lacks::OldSuites),
    tls13("ELBSecurityPolicy-TLS13-1-1-2021-06", Version::V11, Lacks::OldSuites),
    tls13("ELBSecurityPolicy-TLS13-1-2-2021-06", Version::V12, Lacks::OldSuites),
    tls13("ELBSecurityPolicy-TLS13-1-2-Ext1-2021-06", Version::V12, Lacks::OldSuites),
    tls13("ELBSecurityPolicy-TLS13-1-2-Ext2-2021-06", Version::V12, Lacks::OldSuites),
    tls13("ELBSecurityPolicy-TLS13-1-2-Res-2021-06", Version::V12, Lacks::Nothing),
    tls13("ELBSecurityPolicy-TLS13-1-3-2021-06", Version::V13, Lacks::Nothing),
    tls13("ELBSecurityPolicy-TLS13-1-2-PQ-2025-09", Version::V12, Lacks::PostQuantum),
    tls13("ELBSecurityPolicy-TLS13-1-2-Res-PQ-2025-09", Version::V12, Lacks::PostQuantum),
    tls13("ELBSecurityPolicy-TLS13-1-3-PQ-2025-09", Version::V13, Lacks::PostQuantum),
    // Ours, for listeners whose Service names none.
    tls13("", Version::V12, Lacks::Nothing),
];

/// The policy of that name; the empty name is our default.
pub fn policy(name: &str) -> Option<&'static Policy> {
    POLICIES.iter().find(|policy| policy.name == name)
}

impl Policy {
    /// What of it is not spoken here, in words.
    pub fn without(&self) -> Option<String> {
        let versions = match self.lowest {
            Version::V10 => Some("TLS 1.0 and 1.1"),
            Version::V11 => Some("TLS 1.1"),
            Version::V12 | Version::V13 => None,
        };
        let suites = match self.lacks {
            Lacks::Nothing => None,
            Lacks::OldSuites => Some("suites with CBC or without forward secrecy"),
            Lacks::PostQuantum => Some("post-quantum key exchange"),
        };
        let parts: Vec<_> = [versions, suites].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}

/// The names that are accepted, in words that fit into an Event.
pub(super) fn accepted() -> String {
    let names: Vec<_> = POLICIES.iter().filter_map(|policy| policy.name.strip_prefix(PREFIX)).collect();
    format!("a predefined policy: {PREFIX} and one of {}", names.join(", "))
}
