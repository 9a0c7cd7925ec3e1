//! How does an entry read? The fields of AWS' classic load balancers, in their order. Pure.
//! <https://docs.aws.amazon.com/elasticloadbalancing/latest/classic/access-log-collection.html>

use std::fmt::Write;
use std::time::Duration;

use super::Entry;

#[cfg(test)]
mod tests;

/// Longer requests and agents are cut: AWS cuts agents here.
const LONGEST: usize = 8 * 1024;

/// Appends the line of an entry, with its end.
pub(super) fn write(name: &str, entry: &Entry, into: &mut String) {
    // A String takes everything.
    let _ = write!(into, "{:.6} {name} {} ", entry.time, entry.client);
    let _ = match entry.backend {
        Some(backend) => write!(into, "{backend}"),
        None => write!(into, "-"),
    };
    entry.times.iter().for_each(|time| seconds(*time, into));
    status(entry.status.0, into);
    status(entry.status.1, into);
    let _ = write!(into, " {} {} \"", entry.bytes.0, entry.bytes.1);
    quoted(entry.request.as_deref().unwrap_or("- - - "), into);
    into.push_str("\" \"");
    quoted(entry.agent.as_deref().unwrap_or("-"), into);
    let (suite, version) = entry.tls.as_ref().map_or(("-", "-"), |(suite, version)| (suite, version));
    let _ = writeln!(into, "\" {suite} {version}");
}

fn seconds(time: Option<Duration>, into: &mut String) {
    let _ = match time {
        Some(time) => write!(into, " {}.{:06}", time.as_secs(), time.subsec_micros()),
        None => write!(into, " -1"),
    };
}

fn status(code: u16, into: &mut String) {
    let _ = match code {
        0 => write!(into, " -"),
        code => write!(into, " {code}"),
    };
}

/// What clients sent must not end the field, nor the line.
fn quoted(text: &str, into: &mut String) {
    let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    for letter in text[..end].chars() {
        if letter == '"' || letter.is_control() {
            let mut bytes = [0; 4];
            for byte in letter.encode_utf8(&mut bytes).bytes() {
                let _ = write!(into, "\\x{byte:02x}");
            }
        } else {
            into.push(letter);
        }
    }
}
