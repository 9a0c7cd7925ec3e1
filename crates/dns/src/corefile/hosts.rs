//! `hosts`: names of a file like `/etc/hosts`, and of the Corefile itself.

use std::net::IpAddr;
use std::time::Duration;

use fairlead_zone::Name;

use super::Findings;
use super::tree::Line;
use super::value::{fallthrough, only_duration, only_number, zones};
use crate::settings::{Fallthrough, Hosts};

/// `hosts [FILE [ZONES...]] { ... }`.
pub(super) fn read(line: &Line, of_block: &[Name], found: &mut Findings) -> Option<Hosts> {
    let (file, names) = match line.arguments().split_first() {
        Some((file, names)) => (Some(file.text.clone()), names),
        None => (None, line.arguments()),
    };
    let mut hosts = Hosts {
        file,
        zones: zones("hosts", names, of_block, found),
        inline: Vec::new(),
        ttl: 3600,
        reload: Duration::from_secs(5),
        reverse: true,
        fallthrough: Fallthrough::Never,
        fallthrough_unsupported: false,
    };
    for option in line.body.iter().flatten() {
        read_option(option, &mut hosts, found);
    }
    if hosts.fallthrough_unsupported && hosts.fallthrough == Fallthrough::Never {
        found.add("hosts", line.name(), "fallthrough_unsupported needs fallthrough");
    }
    // Who says neither a file nor a line means the machine's own file.
    if hosts.file.is_none() {
        hosts.file = Some("/etc/hosts".to_owned());
    }
    Some(hosts)
}

fn read_option(option: &Line, hosts: &mut Hosts, found: &mut Findings) {
    match option.name().text.as_str() {
        "fallthrough" => hosts.fallthrough = fallthrough("hosts", option, found),
        "fallthrough_unsupported" => hosts.fallthrough_unsupported = found.alone("hosts", option),
        "no_reverse" => hosts.reverse = !found.alone("hosts", option),
        "ttl" => match only_number::<u32>("hosts", option, found) {
            Some(ttl @ 1..=65535) => hosts.ttl = ttl,
            Some(_) => found.add("hosts", option.name(), "ttl is from 1 to 65535"),
            None => {}
        },
        "reload" => hosts.reload = only_duration("hosts", option, found).unwrap_or_default(),
        text if text.parse::<IpAddr>().is_ok() => {
            let words: Vec<&str> = option.words.iter().map(|word| word.text.as_str()).collect();
            hosts.inline.push(words.join(" "));
        }
        _ => found.unknown("hosts", option),
    }
}
