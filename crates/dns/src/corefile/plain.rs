//! Plugins with little to say: where to listen, how often to look, and switches.

use std::net::IpAddr;
use std::time::Duration;

use fairlead_zone::Name;

use super::Findings;
use super::tree::Line;
use super::value::{duration, listen, number, only, only_duration, zones};
use crate::settings::{Autopath, Bind, Health, Listen, Ready, Reload, Search};

/// A plugin that is there or is not.
pub(super) fn switch(line: &Line, found: &mut Findings) -> bool {
    let name = &line.name().text;
    found.no_body(name, line);
    found.alone(name, line)
}

/// `loadbalance [round_robin]`.
pub(super) fn loadbalance(line: &Line, found: &mut Findings) -> bool {
    found.no_body("loadbalance", line);
    match line.arguments() {
        [] => {}
        [policy] if policy.text == "round_robin" => {}
        [policy, ..] => found.unsupported("loadbalance", policy),
    }
    true
}

/// `health [ADDRESS] { lameduck DURATION }`.
pub(super) fn health(line: &Line, found: &mut Findings) -> Option<Health> {
    let mut health = Health { listen: place("health", line, 8080, found)?, lameduck: Duration::ZERO };
    for option in line.body.iter().flatten() {
        match option.name().text.as_str() {
            "lameduck" => health.lameduck = only_duration("health", option, found).unwrap_or_default(),
            _ => found.unknown("health", option),
        }
    }
    Some(health)
}

/// `ready [ADDRESS] { monitor until-ready|continuously }`.
pub(super) fn ready(line: &Line, found: &mut Findings) -> Option<Ready> {
    let mut ready = Ready { listen: place("ready", line, 8181, found)?, continuously: false };
    for option in line.body.iter().flatten() {
        match (option.name().text.as_str(), option.arguments()) {
            ("monitor", [how]) if how.text == "continuously" => ready.continuously = true,
            ("monitor", [how]) if how.text == "until-ready" => ready.continuously = false,
            ("monitor", [how]) => found.invalid("ready", how, "way to monitor"),
            ("monitor", _) => found.arguments("ready", option),
            _ => found.unknown("ready", option),
        }
    }
    Some(ready)
}

/// `prometheus [ADDRESS]`. What it tells of the run time of another language does not exist here.
pub(super) fn prometheus(line: &Line, found: &mut Findings) -> Option<Listen> {
    let usual = Listen { address: Some(IpAddr::from([127, 0, 0, 1])), port: 9153 };
    for option in line.body.iter().flatten().filter(|option| option.name().text != "runtime_metrics") {
        found.unknown("prometheus", option);
    }
    if line.arguments().is_empty() { Some(usual) } else { place("prometheus", line, 9153, found) }
}

/// Where a plugin listens.
fn place(plugin: &str, line: &Line, port: u16, found: &mut Findings) -> Option<Listen> {
    match line.arguments() {
        [] => Some(Listen { address: None, port }),
        _ => listen(plugin, only(plugin, line, found)?, found),
    }
}

/// `reload [INTERVAL] [JITTER]`.
pub(super) fn reload(line: &Line, found: &mut Findings) -> Option<Reload> {
    const LEAST: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(1));
    found.no_body("reload", line);
    let mut reload = Reload { interval: Duration::from_secs(30), jitter: Duration::from_secs(15) };
    if line.arguments().len() > 2 {
        found.arguments("reload", line);
    }
    if let Some(interval) = line.arguments().first() {
        reload.interval = duration("reload", interval, found)?;
        if reload.interval < LEAST.0 {
            found.invalid("reload", interval, "interval: it is at least 2s");
        }
    }
    if let Some(jitter) = line.arguments().get(1) {
        reload.jitter = duration("reload", jitter, found)?;
        if reload.jitter < LEAST.1 {
            found.invalid("reload", jitter, "jitter: it is at least 1s");
        }
    }
    reload.jitter = reload.jitter.min(reload.interval / 2);
    Some(reload)
}

/// `bind ADDRESS|INTERFACE ... { except ADDRESS|INTERFACE ... }`.
pub(super) fn bind(line: &Line, found: &mut Findings) -> Vec<Bind> {
    let one = |text: &str| match text.parse() {
        Ok(address) => Bind::Address(address),
        Err(_) => Bind::Interface(text.to_owned()),
    };
    if line.arguments().is_empty() {
        found.arguments("bind", line);
    }
    let mut binds: Vec<Bind> = line.arguments().iter().map(|word| one(&word.text)).collect();
    for option in line.body.iter().flatten() {
        match option.name().text.as_str() {
            "except" => {
                let not = option.arguments().iter().map(|word| Bind::Except(Box::new(one(&word.text))));
                binds.extend(not);
            }
            _ => found.unknown("bind", option),
        }
    }
    binds
}

/// `autopath [ZONE...] RESOLV-CONF`.
pub(super) fn autopath(line: &Line, of_block: &[Name], found: &mut Findings) -> Option<Autopath> {
    found.no_body("autopath", line);
    let Some((last, names)) = line.arguments().split_last() else {
        found.arguments("autopath", line);
        return None;
    };
    let search = match last.text.strip_prefix('@') {
        Some("kubernetes") => Search::Kubernetes,
        Some(_) => {
            found.unsupported("autopath", last);
            return None;
        }
        None => Search::File(last.text.clone()),
    };
    Some(Autopath { zones: zones("autopath", names, of_block, found), search })
}

/// `multisocket [NUM_SOCKETS]`.
pub(super) fn multisocket(line: &Line, found: &mut Findings) -> Option<usize> {
    found.no_body("multisocket", line);
    let [count] = line.arguments() else {
        if !line.arguments().is_empty() {
            found.arguments("multisocket", line);
        }
        return None;
    };
    let sockets = number("multisocket", count, found)?;
    if !(1..=1024).contains(&sockets) {
        found.invalid("multisocket", count, "number from 1 to 1024");
    }
    Some(sockets)
}
