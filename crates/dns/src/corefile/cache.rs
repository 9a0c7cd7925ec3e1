//! `cache`: for how long answers are kept, and how many.

use std::time::Duration;

use fairlead_zone::Name;

use super::Findings;
use super::tree::{Line, Word};
use super::value::{duration, number, only_duration, zones};
use crate::settings::{Cache, Prefetch, Share, Stale};

/// At least so many can be kept; fewer are rounded up.
const LEAST: usize = 1024;
/// At most so many: a bound of our own, a gigabyte or so.
const MOST: usize = 1 << 20;
/// Failures are kept for this long at most.
const LONGEST_FAILURE: Duration = Duration::from_secs(300);

/// `cache [TTL] [ZONES...] { ... }`.
pub(super) fn read(line: &Line, of_block: &[Name], found: &mut Findings) -> Option<Cache> {
    let mut cache = Cache::default();
    let mut names = line.arguments();
    if let Some((first, rest)) = names.split_first().filter(|(first, _)| first.text.parse::<i64>().is_ok()) {
        let ttl = seconds(first, found);
        (cache.success.max_ttl, cache.denial.max_ttl) = (ttl, ttl);
        names = rest;
    }
    cache.zones = zones("cache", names, of_block, found);
    for option in line.body.iter().flatten() {
        read_option(option, &mut cache, found);
    }
    Some(cache)
}

fn read_option(option: &Line, cache: &mut Cache, found: &mut Findings) {
    match option.name().text.as_str() {
        "success" => share(option, &mut cache.success, found),
        "denial" => share(option, &mut cache.denial, found),
        "prefetch" => cache.prefetch = prefetch(option, found),
        "serve_stale" => cache.stale = stale(option, found),
        "servfail" => {
            let Some(keep) = only_duration("cache", option, found) else { return };
            if keep > LONGEST_FAILURE {
                found.add("cache", option.name(), "servfail is at most 5m");
            }
            cache.servfail = keep;
        }
        "disable" => disable(option, cache, found),
        "keepttl" => cache.keep_ttl = found.alone("cache", option),
        "serve_stale_policy" => found.unsupported("cache", option.name()),
        _ => found.unknown("cache", option),
    }
}

/// `success CAPACITY [TTL] [MINTTL]`.
fn share(option: &Line, share: &mut Share, found: &mut Findings) {
    let [capacity, rest @ ..] = option.arguments() else { return found.arguments("cache", option) };
    if let Some(capacity) = number::<usize>("cache", capacity, found) {
        share.capacity = capacity.clamp(LEAST, MOST);
    }
    if let Some(ttl) = rest.first() {
        share.max_ttl = seconds(ttl, found);
    }
    if let Some(least) = rest.get(1) {
        share.min_ttl = number("cache", least, found).unwrap_or_default();
    }
    if rest.len() > 2 {
        found.arguments("cache", option);
    }
}

fn seconds(word: &Word, found: &mut Findings) -> u32 {
    let ttl = number("cache", word, found).unwrap_or(1);
    if ttl == 0 {
        found.invalid("cache", word, "time to live: it is at least 1");
    }
    ttl
}

/// `prefetch AMOUNT [[DURATION] [PERCENTAGE%]]`.
fn prefetch(option: &Line, found: &mut Findings) -> Option<Prefetch> {
    let [amount, rest @ ..] = option.arguments() else {
        found.arguments("cache", option);
        return None;
    };
    let amount = number("cache", amount, found)?;
    let gap = rest.first().map_or(Some(Duration::from_secs(60)), |word| duration("cache", word, found))?;
    let percent = match rest.get(1) {
        None => 10,
        Some(word) => match word.text.strip_suffix('%').and_then(|text| text.parse().ok()) {
            Some(percent @ 10..=90) => percent,
            _ => {
                found.invalid("cache", word, "percentage from 10% to 90%");
                return None;
            }
        },
    };
    (amount > 0).then_some(Prefetch { amount, gap, percent })
}

/// `serve_stale [DURATION] [immediate [RESPONSE_TTL] | verify [VERIFY_TIMEOUT [RESPONSE_TTL]]]`.
fn stale(option: &Line, found: &mut Findings) -> Option<Stale> {
    let mut stale = Stale { keep: Duration::from_secs(3600), verify: false, limit: Duration::ZERO, ttl: 0 };
    let arguments = option.arguments();
    if let Some(keep) = arguments.first() {
        stale.keep = duration("cache", keep, found)?;
    }
    let mut times = arguments.get(2..).unwrap_or_default();
    match arguments.get(1).map(|mode| (mode, mode.text.to_lowercase())) {
        None => {}
        Some((_, mode)) if mode == "immediate" => {}
        Some((_, mode)) if mode == "verify" => {
            stale.verify = true;
            if let Some((limit, rest)) = times.split_first() {
                stale.limit = duration("cache", limit, found)?;
                times = rest;
            }
        }
        Some((word, _)) => found.invalid("cache", word, "way to use expired answers"),
    }
    match times {
        [] => {}
        [ttl] => stale.ttl = u32::try_from(duration("cache", ttl, found)?.as_secs()).unwrap_or(u32::MAX),
        [_, recheck, ..] => found.unsupported("cache", recheck),
    }
    Some(stale)
}

/// `disable success|denial [ZONES...]`.
fn disable(option: &Line, cache: &mut Cache, found: &mut Findings) {
    let [what, names @ ..] = option.arguments() else { return found.arguments("cache", option) };
    let zones = zones("cache", names, &[Name::root()], found);
    match what.text.as_str() {
        "success" => cache.success.disabled.extend(zones),
        "denial" => cache.denial.disabled.extend(zones),
        _ => found.invalid("cache", what, "kind of answers: success or denial"),
    }
}
