//! Records as text, as zone files write them: `example.org. 60 IN A 192.0.2.1`.

use std::net::{Ipv4Addr, Ipv6Addr};

use fairlead_zone::Name;
use fairlead_zone::message::Record;

use crate::words;

/// The time to live of a record that does not say it.
const TTL: u32 = 3600;

/// Reads a record; `None` if it is none, or of a type that cannot be written so here.
pub(crate) fn parse(text: &str) -> Option<Record> {
    let words = split(text)?;
    let (name, mut rest) = words.split_first()?;
    let (mut ttl, mut class) = (TTL, words::IN);
    // They may stand in either order, or be missing.
    while let Some((first, after)) = rest.split_first() {
        if let Ok(seconds) = first.parse() {
            ttl = seconds;
        } else if let Some(number) = words::class_number(first).filter(|number| *number != words::ANY) {
            class = number;
        } else {
            break;
        }
        rest = after;
    }
    let (kind, data) = rest.split_first()?;
    let rtype = words::type_number(kind)?;
    let rdata = rdata(rtype, data)?.into();
    Some(Record { name: name.parse().ok()?, rtype, class, ttl, rdata })
}

fn rdata(rtype: u16, data: &[String]) -> Option<Vec<u8>> {
    let name = |text: &str| text.parse::<Name>().ok().map(|name| name.wire().to_vec());
    let short = |text: &str| text.parse::<u16>().ok().map(u16::to_be_bytes);
    Some(match (rtype, data) {
        (words::A, [address]) => address.parse::<Ipv4Addr>().ok()?.octets().to_vec(),
        (words::AAAA, [address]) => address.parse::<Ipv6Addr>().ok()?.octets().to_vec(),
        (words::NS | words::CNAME | words::PTR, [target]) => name(target)?,
        (words::MX, [preference, target]) => [short(preference)?.to_vec(), name(target)?].concat(),
        (words::SRV, [priority, weight, port, target]) => {
            let numbers = [short(priority)?, short(weight)?, short(port)?].concat();
            [numbers, name(target)?].concat()
        }
        (words::TXT, [_, ..]) => {
            let part = |text: &String| u8::try_from(text.len()).ok().map(|len| [&[len], text.as_bytes()].concat());
            data.iter().map(part).collect::<Option<Vec<_>>>()?.concat()
        }
        (words::SOA, [server, mailbox, numbers @ ..]) if numbers.len() == 5 => {
            let number = |text: &String| text.parse::<u32>().ok().map(u32::to_be_bytes);
            let numbers = numbers.iter().map(number).collect::<Option<Vec<_>>>()?.concat();
            [name(server)?, name(mailbox)?, numbers].concat()
        }
        _ => return None,
    })
}

/// Words, or what stands in quotes; parentheses only let lines be longer.
fn split(text: &str) -> Option<Vec<String>> {
    let (mut words, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '"' => rest[1..].split_once('"')?,
            '(' | ')' => ("", &rest[1..]),
            ';' => break,
            _ => rest.split_at(rest.find(|c: char| c.is_whitespace() || matches!(c, '(' | ')')).unwrap_or(rest.len())),
        };
        if first == '"' || !word.is_empty() {
            words.push(word.to_owned());
        }
        rest = after.trim_start();
    }
    Some(words)
}

#[cfg(test)]
mod tests;
