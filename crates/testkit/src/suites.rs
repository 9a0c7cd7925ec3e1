//! Test suites of other projects, run as programs: h2spec, slowhttptest, sslscan, schemathesis.
//!
//! None of them is a part of this repository. A test looks for the program (`H2SPEC`,
//! `SCHEMATHESIS`, ..., else `PATH`) and is skipped where it is absent. docs/suites.md lists
//! versions and results.

use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::need::{full, need, program, skip};

/// Maximum time of one run. A suite that is still running then has found a hang.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// Output of a suite, and whether its process exited with 0.
#[derive(Debug, Clone)]
pub struct SuiteRun {
    /// Standard output, then standard error, without colours.
    pub output: String,
    /// True if the process exited with 0.
    pub success: bool,
}

/// Result of h2spec.
#[derive(Debug, Clone)]
pub struct H2specReport {
    /// The last line: `146 tests, 145 passed, 1 skipped, 0 failed`.
    pub summary: String,
    /// Descriptions of the cases that failed.
    pub failed: Vec<String>,
    /// Everything h2spec printed.
    pub output: String,
}

/// Returns true if `test` may run a suite that takes minutes: `./test --full` was asked for and the
/// program is here. Otherwise the test counts as skipped.
pub fn need_long(test: &str, suite: &str) -> bool {
    if !full() {
        skip(test, "./test --full");
        return false;
    }
    need(test, suite)
}

/// Runs h2spec (RFC 7540 and RFC 7541) against a server.
///
/// # Panics
/// If h2spec cannot be started, does not end, or prints no summary.
pub fn h2spec(address: SocketAddr, tls: bool, path: &str) -> H2specReport {
    let mut command = suite("h2spec");
    command.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string(), "-P", path, "-o", "5"]);
    if tls {
        command.args(["-t", "-k"]);
    }
    let output = run(&mut command).output;
    let summary = output.lines().rfind(|line| line.contains(" tests, ")).map(str::to_owned);
    let summary = summary.unwrap_or_else(|| panic!("h2spec printed no summary:\n{output}"));
    // Failed cases are listed once more behind the heading, each as `× 2: Sends invalid connection
    // preface`.
    let failures = output.split("Failures:").nth(1).unwrap_or_default();
    let failed = failures.lines().filter_map(|line| line.trim().strip_prefix("× ")?.split_once(": "));
    H2specReport { summary, failed: failed.map(|(_, case)| case.to_owned()).collect(), output }
}

/// Runs slowhttptest in one of its modes (`-H`, `-B`, `-R`, `-X`) with `connections` slow clients for `length` and returns
/// the states of its connections. Its own probe ("service available") is not judged: the test has a client of its own.
///
/// # Panics
/// If slowhttptest cannot be started or does not end.
pub fn slowhttptest(mode: &str, connections: usize, length: Duration, url: &str) -> String {
    let mut command = suite("slowhttptest");
    let (connections, rate, length) = (connections.to_string(), connections / 2, length.as_secs().to_string());
    command.args([mode, "-c", &connections, "-r", &rate.to_string(), "-i", "5", "-l", &length, "-u", url]);
    run(&mut command).output
}

/// Runs sslscan and returns its report: offered protocol versions, ciphers, groups and known flaws.
///
/// # Panics
/// If sslscan cannot be started or does not end.
pub fn sslscan(address: SocketAddr, name: &str) -> String {
    let mut command = suite("sslscan");
    command.args(["--no-colour", "--show-certificate", &format!("--sni-name={name}"), &address.to_string()]);
    run(&mut command).output
}

/// Returns what sslscan reports that no server should offer: protocol versions before TLS 1.2,
/// ciphers without forward secrecy or authentication or with less than 128 bits, compression,
/// insecure renegotiation, Heartbleed.
pub fn sslscan_findings(report: &str) -> Vec<String> {
    let weak = |line: &str| {
        let mut words = line.split_whitespace();
        let enabled = |name: &str| line.starts_with(name) && line.ends_with("enabled");
        let cipher = match words.next() {
            Some("Preferred" | "Accepted") => {
                let bits: u32 =
                    line.split(" bits").next().and_then(|left| left.rsplit(' ').next()?.parse().ok()).unwrap_or(0);
                let name = line.split(" bits").nth(1).unwrap_or_default();
                let forward_secret = name.contains("ECDHE-") || name.contains("DHE-") || name.contains("TLS_");
                bits < 128
                    || !forward_secret
                    || ["RC4", "3DES", "NULL", "EXP", "ADH", "AECDH"].iter().any(|bad| name.contains(bad))
            }
            _ => false,
        };
        let old = ["SSLv2", "SSLv3", "TLSv1.0", "TLSv1.1"].iter().any(|version| enabled(version));
        let flaw = line.starts_with("Compression enabled")
            || line.starts_with("Insecure session renegotiation supported")
            || (line.contains("vulnerable to heartbleed") && !line.contains("not vulnerable"));
        cipher || old || flaw
    };
    report.lines().map(str::trim).filter(|line| weak(line)).map(str::to_owned).collect()
}

/// Runs a suite to its end.
///
/// # Panics
/// If it cannot be started or does not end in time.
pub fn run(command: &mut Command) -> SuiteRun {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let out = read_all(child.stdout.take().expect("asked for"));
    let err = read_all(child.stderr.take().expect("asked for"));
    let success = wait(&mut child);
    let output = out.join().expect("a reader") + &err.join().expect("a reader");
    assert!(success.is_some(), "{command:?} does not end:\n{output}");
    SuiteRun { output: without_colours(&output), success: success == Some(true) }
}

/// Returns the command of a suite that [`need`] has found.
pub fn suite(name: &str) -> Command {
    Command::new(program(name).as_deref().unwrap_or(Path::new(name)))
}

/// Waits for a process; kills one that takes too long and returns `None`.
fn wait(child: &mut Child) -> Option<bool> {
    let started = Instant::now();
    while started.elapsed() < LONGEST {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return Some(status.success());
        }
        thread::sleep(Duration::from_millis(50));
    }
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    None
}

fn read_all(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Removes the escape sequences of terminals (`ESC [ 0 m`).
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|letter: char| letter.is_ascii_alphabetic()).map_or(part.len(), |end| end + 1);
        plain.push_str(&part[end..]);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_removed() {
        assert_eq!(without_colours("a\x1b[1;32mb\x1b[0mc"), "abc");
        assert_eq!(without_colours("\x1b[2Jx\x1b["), "x");
    }

    #[test]
    fn weak_offers_are_found_in_a_report_and_strong_ones_are_not() {
        let report = "SSLv3     disabled\nTLSv1.1   enabled\nTLSv1.2   enabled\nTLS Compression disabled\n\
            Session renegotiation not supported\nTLSv1.2 not vulnerable to heartbleed\n\
            Preferred TLSv1.3  128 bits  TLS_AES_128_GCM_SHA256        Curve 25519 DHE 253\n\
            Accepted  TLSv1.2  256 bits  ECDHE-RSA-AES256-GCM-SHA384   Curve 25519 DHE 253\n\
            Accepted  TLSv1.2  112 bits  ECDHE-RSA-DES-CBC3-SHA\n\
            Accepted  TLSv1.2  256 bits  AES256-GCM-SHA384\n";
        let found = sslscan_findings(report);
        assert_eq!(found.len(), 3, "{found:#?}");
        assert!(found[0].starts_with("TLSv1.1") && found[1].contains("DES-CBC3") && found[2].contains("AES256"));
    }
}
