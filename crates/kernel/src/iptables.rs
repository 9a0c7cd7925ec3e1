//! How are rules of iptables read and written? By its own programs, as a whole table or a part of it, in one go.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::error::Error;

/// How long to wait for another program that holds the lock of iptables.
const LOCK_WAIT_S: &str = "5";
/// Enough for any complaint; what comes beyond is not kept.
const MESSAGE_LIMIT: usize = 2000;

/// Which of the two programs of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// Whichever the system's administrator chose.
    Default,
    /// The old kernel interface.
    Legacy,
    /// A translation to nftables.
    Nft,
}

/// Which addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// IPv4
    V4,
    /// IPv6
    V6,
}

/// The programs of one variant, for one version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iptables {
    /// Which variant.
    pub variant: Variant,
    /// Which version.
    pub version: Version,
}

impl Iptables {
    /// Writes rules in the format of `iptables-restore`, one table after the other, each all or nothing. Chains the text
    /// does not name stay as they are. A mistake says its line.
    pub fn restore(&self, rules: &str) -> Result<(), Error> {
        // Both variants take the option; only the old one has a lock.
        let arguments = ["--noflush", "--counters", "-w", LOCK_WAIT_S];
        let tool = self.tool("-restore");
        let output = run(&tool, &arguments, Some(rules.to_owned()))?;
        if output.status.success() { Ok(()) } else { Err(complaint(tool, &output)) }
    }

    /// Checks rules without writing them.
    pub fn check(&self, rules: &str) -> Result<(), Error> {
        let tool = self.tool("-restore");
        let output = run(&tool, &["--noflush", "--test", "-w", LOCK_WAIT_S], Some(rules.to_owned()))?;
        if output.status.success() { Ok(()) } else { Err(complaint(tool, &output)) }
    }

    /// The rules of a table in the format of `iptables-save`, with counters.
    pub fn save(&self, table: &str) -> Result<String, Error> {
        let tool = self.tool("-save");
        let output = run(&tool, &["-c", "-t", table], None)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(complaint(tool, &output))
    }

    /// The tables this thread's network namespace has by the old interface. To ask its programs for a table is to make it.
    pub fn legacy_tables(version: Version) -> Vec<String> {
        let file = match version {
            Version::V4 => "/proc/thread-self/net/ip_tables_names",
            Version::V6 => "/proc/thread-self/net/ip6_tables_names",
        };
        // A kernel without the interface has no such file.
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Whether the programs are there and the kernel answers them.
    pub fn is_available(&self) -> bool {
        self.save("nat").is_ok()
    }

    fn tool(&self, verb: &str) -> String {
        let name = match self.version {
            Version::V4 => "iptables",
            Version::V6 => "ip6tables",
        };
        let variant = match self.variant {
            Variant::Default => "",
            Variant::Legacy => "-legacy",
            Variant::Nft => "-nft",
        };
        format!("{name}{variant}{verb}")
    }
}

/// Runs a system tool in this thread's namespaces, hands it `input`, and waits for it.
pub(crate) fn run(tool: &str, arguments: &[&str], input: Option<String>) -> Result<Output, Error> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => {
            Error::Tool { tool: tool.to_owned(), message: "it is not installed".into(), line: None }
        }
        _ => Error::System { action: format!("running {tool}"), source },
    };
    let mut child = Command::new(tool)
        .args(arguments)
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // Written beside the reading, so that neither waits for the other. A tool that ends early has said why.
    let writer = input.zip(child.stdin.take()).map(|(text, mut pipe)| {
        thread::spawn(move || {
            let _ = pipe.write_all(text.as_bytes());
        })
    });
    let output = child.wait_with_output().map_err(failed)?;
    if let Some(writer) = writer {
        let _ = writer.join();
    }
    Ok(output)
}

/// What a tool said, as an error.
pub(crate) fn complaint(tool: String, output: &Output) -> Error {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut message = text.lines().map(str::trim).filter(|line| useful(line)).collect::<Vec<_>>().join("; ");
    if message.is_empty() {
        message = format!("it ended with {}", output.status);
    }
    let line = line_number(&text);
    message.truncate(message.floor_char_boundary(MESSAGE_LIMIT));
    Error::Tool { tool, message, line }
}

fn useful(line: &str) -> bool {
    !line.is_empty() && !line.starts_with("Try `") && !line.starts_with("Error occurred at line")
}

/// The line the tool did not like: `Error occurred at line: 3`, `line 3 failed`, `restore: line 3:`.
fn line_number(text: &str) -> Option<usize> {
    text.match_indices("line").find_map(|(at, word)| {
        let rest = text[at + word.len()..].trim_start_matches([':', ' ']);
        let digits = rest.split(|character: char| !character.is_ascii_digit()).next()?;
        digits.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::line_number;

    #[test]
    fn the_line_is_found_however_the_tool_says_it() {
        let check = |text: &str, line| assert_eq!(line_number(text), line, "{text}");
        check(
            "iptables-restore v1.8.9 (nf_tables): \nline 3: CHAIN_USER_DEL failed (Device or resource busy)",
            Some(3),
        );
        check("iptables-restore: line 12 failed", Some(12));
        check("Error occurred at line: 7\nTry `iptables-restore -h'", Some(7));
        check("Another app is currently holding the xtables lock", None);
        check("ip6tables-restore: out of line", None);
    }
}
