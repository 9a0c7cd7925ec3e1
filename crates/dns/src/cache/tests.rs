use std::net::IpAddr;

use fairlead_zone::message::Head;

use super::*;
use crate::metrics::Metrics;

fn ask(name: &str) -> Ask {
    Ask::sample(name, words::A)
}

fn cache(change: impl FnOnce(&mut settings::Cache)) -> Cache {
    let mut settings = settings::Cache { zones: vec![Name::root()], ..settings::Cache::default() };
    change(&mut settings);
    Cache::new(&settings, Metrics::new().cache("dns://:53", "."))
}

/// An answer with times to live.
fn answer(ttls: &[u32]) -> Reply {
    let record =
        |ttl: &u32| Record::address("one.example".parse().expect("a name"), *ttl, IpAddr::from([192, 0, 2, 1]));
    Reply { answer: ttls.iter().map(record).collect(), plugin: "forward", ..Reply::default() }
}

/// A name error of a zone that says for how long.
fn denial(ttl: u32, minimum: u32) -> Reply {
    let numbers: Vec<u8> = [1, 2, 3, 4, minimum].iter().flat_map(|number: &u32| number.to_be_bytes()).collect();
    let rdata = [b"\x02ns\0\x01h\0".to_vec(), numbers].concat();
    let soa = Record::new("example".parse().expect("a name"), words::SOA, ttl, &rdata);
    let head = Head { rcode: Rcode::NX_DOMAIN, ..Head::default() };
    Reply { head, authority: vec![soa], plugin: "forward", ..Reply::default() }
}

/// For how many seconds an answer is kept, and what time to live it is given with at first.
fn check(cache: &Cache, mut reply: Reply, expected: u32) {
    let (ask, now) = (ask("one.example"), Instant::now());
    cache.put(&ask, &mut reply, now);
    assert!(reply.records().all(|record| record.ttl == expected), "{reply:?}");
    let later = |seconds: u32| cache.get(&ask, now + Duration::from_secs(seconds.into()));
    if expected > 1 {
        let Some(Hit::Fresh(hit)) = later(1) else { panic!("it is kept") };
        assert!(hit.records().all(|record| record.ttl == expected - 1), "{hit:?}");
    }
    assert_eq!(later(expected), None, "it has expired");
    assert_eq!(cache.len(), (0, 0), "and is gone");
}

#[test]
fn the_shortest_time_to_live_counts_within_bounds() {
    check(&cache(|_| {}), answer(&[600, 60, 300]), 60);
    check(&cache(|_| {}), answer(&[100_000]), 3600);
    check(&cache(|_| {}), answer(&[1]), 5);
    check(&cache(|settings| settings.success.max_ttl = 30), answer(&[600]), 30);
    check(&cache(|settings| settings.success.max_ttl = 2), answer(&[600]), 2);
    check(&cache(|_| {}), denial(600, 60), 60);
    check(&cache(|_| {}), denial(60, 600), 60);
    check(&cache(|settings| settings.denial.max_ttl = 5), denial(600, 600), 5);
}

#[test]
fn failures_are_kept_briefly_and_what_is_cut_off_not_at_all() {
    let (cache, ask, now) = (cache(|_| {}), ask("one.example"), Instant::now());
    cache.put(&ask, &mut Reply { plugin: "forward", ..Reply::failed(Rcode::SERV_FAIL) }, now);
    assert!(cache.get(&ask, now + Duration::from_secs(4)).is_some());
    assert!(cache.get(&ask, now + Duration::from_secs(5)).is_none());
    let mut cut = answer(&[60]);
    cut.head.truncated = true;
    cache.put(&ask, &mut cut, now);
    cache.put(&ask, &mut Reply { plugin: "forward", ..Reply::failed(Rcode::REFUSED) }, now);
    assert_eq!(cache.len(), (0, 0));
}

#[test]
fn a_name_that_appears_takes_the_place_of_its_denial() {
    let (cache, ask, now) = (cache(|_| {}), ask("one.example"), Instant::now());
    cache.put(&ask, &mut denial(60, 60), now);
    cache.put(&ask, &mut answer(&[60]), now);
    assert_eq!(cache.len(), (1, 0));
    assert!(matches!(cache.get(&ask, now), Some(Hit::Fresh(reply)) if !reply.answer.is_empty()));
}

#[test]
fn other_questions_have_other_answers() {
    let (cache, now) = (cache(|_| {}), Instant::now());
    cache.put(&ask("one.example"), &mut answer(&[60]), now);
    assert!(cache.get(&ask("ONE.example"), now).is_some());
    let other = |change: fn(&mut Ask)| {
        let mut ask = ask("one.example");
        change(&mut ask);
        cache.get(&ask, now)
    };
    assert_eq!(other(|ask| ask.rtype = words::AAAA), None);
    assert_eq!(other(|ask| ask.class = 3), None);
    assert_eq!(other(|ask| ask.unchecked = true), None);
    let secure = fairlead_zone::message::Edns { dnssec_ok: true, ..Default::default() };
    assert_eq!(other(|ask| ask.edns = None), other(|_| {}));
    let mut ask = ask("one.example");
    ask.edns = Some(secure);
    assert_eq!(cache.get(&ask, now), None);
}

#[test]
fn the_number_and_the_size_of_answers_are_bounded() {
    let cache = cache(|settings| settings.success.capacity = 1024);
    let now = Instant::now();
    for number in 0..10_000 {
        cache.put(&ask(&format!("{number}.example")), &mut answer(&[60]), now);
    }
    assert!((900..=1024).contains(&cache.len().0), "{:?}", cache.len());
    let large = answer(&vec![60; 1000]);
    for number in 0..1000 {
        cache.put(&ask(&format!("{number}.example")), &mut large.clone(), now);
    }
    assert!(cache.len().0 < 64, "{:?}", cache.len());
}

#[test]
fn expired_answers_are_given_once_and_then_while_somebody_fetches_them() {
    let stale = settings::Stale { keep: Duration::from_secs(10), verify: false, limit: Duration::ZERO, ttl: 7 };
    let (cache, ask, now) = (cache(|settings| settings.stale = Some(stale)), ask("one.example"), Instant::now());
    cache.put(&ask, &mut answer(&[60]), now);
    let at = |seconds| cache.get(&ask, now + Duration::from_secs(seconds));
    assert!(matches!(at(65), Some(Hit::Stale(reply)) if reply.answer[0].ttl == 7));
    assert!(matches!(at(66), Some(Hit::Fresh(_))), "somebody fetches it");
    cache.refresh_failed(&ask);
    assert!(matches!(at(67), Some(Hit::Stale(_))), "nobody does");
    assert_eq!(at(71), None);
}

#[test]
fn popular_answers_are_fetched_before_they_expire() {
    let prefetch = settings::Prefetch { amount: 2, gap: Duration::from_secs(60), percent: 10 };
    let (cache, ask, now) = (cache(|settings| settings.prefetch = Some(prefetch)), ask("one.example"), Instant::now());
    cache.put(&ask, &mut answer(&[100]), now);
    let at = |seconds| cache.get(&ask, now + Duration::from_secs(seconds));
    assert!(matches!(at(50), Some(Hit::Fresh(_))));
    assert!(matches!(at(95), Some(Hit::Aging(_))));
    assert!(matches!(at(96), Some(Hit::Fresh(_))), "once is enough");
}
