//! What is told of questions and errors, in CoreDNS' words, on standard output. Who asks never waits for who reads it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairlead_zone::message::{self, Query, Rcode};

use crate::ask::{Ask, Reply};
use crate::router::Came;
use crate::settings::{Class, Consolidate, Errors, Log};
use crate::words;

#[cfg(test)]
mod tests;

/// Lines that wait to be written. More are lost.
const LINES: usize = 4096;

/// Time over which errors of the same cause are counted, where no `consolidate` is for them.
const PERIOD: Duration = Duration::from_secs(60);
/// Maximum number of causes that are counted apart.
const CAUSES: usize = 64;
/// Name of the causes beyond [`CAUSES`].
const OTHER_CAUSES: &str = "other causes";

/// Writes lines. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Logger {
    lines: SyncSender<String>,
    /// Errors that are told together later, by their pattern or cause.
    waiting: Arc<Mutex<Vec<(String, u64)>>>,
}

/// Summary of errors that are alike.
#[derive(Debug, Clone, Copy)]
struct Summary<'a> {
    /// The pattern or cause that the errors have in common.
    like: &'a str,
    period: Duration,
    level: &'a str,
    /// True if the first error of a period is logged when it occurs.
    show_first: bool,
}

/// An answer to be told of.
#[derive(Debug)]
pub(crate) struct Told<'a> {
    pub(crate) came: &'a Came<'a>,
    pub(crate) query: &'a Query<'a>,
    pub(crate) reply: &'a Reply,
    /// The reply as it was sent.
    pub(crate) bytes: &'a [u8],
    pub(crate) took: Duration,
}

impl Logger {
    /// Writes to standard output, on a thread of its own.
    pub(crate) fn new() -> std::io::Result<Logger> {
        let (lines, written) = sync_channel::<String>(LINES);
        let write = move || {
            let mut out = std::io::stdout();
            for line in written {
                let _ = writeln!(out, "{line}");
            }
        };
        std::thread::Builder::new().name("dns-log".to_owned()).spawn(write)?;
        Ok(Logger { lines, waiting: Arc::default() })
    }

    /// Tells of an answer, if the `log` is for it.
    pub(crate) fn told(&self, log: &Log, told: &Told<'_>) {
        let name = told.query.name();
        let named = log.names.iter().any(|zone| name.is_under(zone));
        if named && log.classes.iter().any(|class| *class == Class::All || *class == classify(told.reply)) {
            self.line(format!("[INFO] {}", line(&log.format, told)));
        }
    }

    /// Tells of an error.
    pub(crate) fn error(&self, errors: &Errors, ask: &Ask, rcode: Rcode, why: &str) {
        let text = format!("{} {} {}: {why}", rcode.0, ask.name, words::type_name(ask.rtype));
        let together = errors.consolidate.iter().find(|one| one.pattern.regex().is_match(why));
        let Some(Consolidate { period, pattern, level, show_first }) = together else {
            // A question may be anything, so a client could write a log of any length: errors of
            // the same cause are counted.
            return self.consolidate(Summary { like: why, period: PERIOD, level: "error", show_first: true }, &text);
        };
        let like = pattern.regex().as_str();
        self.consolidate(Summary { like, period: *period, level, show_first: *show_first }, &text);
    }

    /// Counts an error; what was counted is told when the period is over.
    fn consolidate(&self, summary: Summary<'_>, text: &str) {
        let level = summary.level.to_uppercase();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let known = waiting.iter().any(|(known, _)| known == summary.like);
        let like = if known || waiting.len() < CAUSES { summary.like } else { OTHER_CAUSES };
        if let Some((_, count)) = waiting.iter_mut().find(|(known, _)| known == like) {
            *count += 1;
            return;
        }
        let pattern = like.to_owned();
        waiting.push((pattern.clone(), 1));
        drop(waiting);
        if summary.show_first {
            self.line(format!("[{level}] plugin/errors: {text}"));
        }
        let logger = self.clone();
        let period = summary.period;
        let least = 1 + u64::from(summary.show_first);
        tokio::spawn(async move {
            tokio::time::sleep(period).await;
            let mut waiting = logger.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(at) = waiting.iter().position(|(known, _)| *known == pattern) else { return };
            let (_, count) = waiting.swap_remove(at);
            drop(waiting);
            if count >= least {
                let seconds = period.as_secs_f64();
                logger.line(format!(
                    "[{level}] plugin/errors: {count} errors like '{pattern}' occurred in last {seconds}s"
                ));
            }
        });
    }

    fn line(&self, line: String) {
        // Who cannot read as fast as questions come misses some.
        let _ = self.lines.try_send(line);
    }
}

fn classify(reply: &Reply) -> Class {
    match reply.head.rcode {
        Rcode::NO_ERROR if reply.answer.is_empty() => Class::Denial,
        Rcode::NO_ERROR => Class::Success,
        Rcode::NX_DOMAIN => Class::Denial,
        _ => Class::Error,
    }
}

/// A line, with its places filled in.
fn line(format: &str, told: &Told<'_>) -> String {
    let (mut out, mut rest) = (String::new(), format);
    while let Some((before, behind)) = rest.split_once('{') {
        out.push_str(before);
        let Some((place, after)) = behind.split_once('}') else {
            rest = &rest[before.len()..];
            break;
        };
        fill(&mut out, place, told);
        rest = after;
    }
    out + rest
}

fn fill(out: &mut String, place: &str, told: &Told<'_>) {
    let Told { came, query, reply, bytes, took } = told;
    let edns = query.edns;
    // Writing to a String cannot fail.
    let _ = match place {
        "type" => write!(out, "{}", words::type_name(query.question.rtype)),
        "name" => write!(out, "{}", query.name()),
        "class" => write!(out, "{}", words::class_name(query.class)),
        "proto" => write!(out, "{}", came.transport.as_str()),
        "remote" => write!(out, "{}", host(came.from.ip())),
        "local" => write!(out, "{}", host(came.local.ip())),
        "port" => write!(out, "{}", came.from.port()),
        "size" => write!(out, "{}", came.bytes.len()),
        "duration" => write!(out, "{:.9}s", took.as_secs_f64()),
        "rcode" => write!(out, "{}", words::code_name(reply.head.rcode.0)),
        "rsize" => write!(out, "{}", bytes.len()),
        ">rflags" => write!(out, "{}", flags(bytes)),
        ">bufsize" => write!(out, "{}", edns.map_or(512, |edns| edns.size)),
        ">do" => write!(out, "{}", edns.is_some_and(|edns| edns.dnssec_ok)),
        ">id" => write!(out, "{}", query.id()),
        ">opcode" => write!(out, "{}", (query.flags() & message::OPCODE) >> 11),
        _ => write!(out, "-"),
    };
}

fn host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}

fn flags(bytes: &[u8]) -> String {
    let flags = bytes.get(2..4).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    let names = [
        (message::QR, "qr"),
        (message::AA, "aa"),
        (message::TC, "tc"),
        (message::RD, "rd"),
        (message::RA, "ra"),
        (message::AD, "ad"),
        (message::CD, "cd"),
    ];
    let set: Vec<&str> = names.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, name)| *name).collect();
    set.join(",")
}
