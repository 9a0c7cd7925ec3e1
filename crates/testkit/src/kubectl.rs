//! A real kubectl, if there is one.

use std::path::PathBuf;
use std::process::Command;

use crate::need::program;

/// A kubectl and how old it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubectl {
    /// Where it is.
    pub path: PathBuf,
    /// The 32 of 1.32.
    pub minor: u32,
}

impl Kubectl {
    /// The one in `KUBECTL`, else the one in `PATH`.
    pub fn find() -> Option<Kubectl> {
        let path = program("kubectl")?;
        let output = Command::new(&path).args(["version", "--client", "-o", "json"]).output().ok()?;
        let minor = minor(&output.stdout)?;
        Some(Kubectl { path, minor })
    }
}

/// The minor version in the answer to `kubectl version --client -o json`. Some builds write `32+`.
fn minor(json: &[u8]) -> Option<u32> {
    let version: serde_json::Value = serde_json::from_slice(json).ok()?;
    version.pointer("/clientVersion/minor")?.as_str()?.trim_end_matches('+').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::minor;

    #[test]
    fn the_minor_version_is_read_from_kubectls_own_answer() {
        assert_eq!(minor(br#"{"clientVersion": {"major": "1", "minor": "32"}}"#), Some(32));
        assert_eq!(minor(br#"{"clientVersion": {"major": "1", "minor": "36+"}}"#), Some(36));
        assert_eq!(minor(b"error: unknown flag"), None);
    }
}
