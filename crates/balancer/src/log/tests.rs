use super::*;

fn log(in_all: &Arc<AtomicU64>, lost: &Arc<AtomicU64>) -> Log {
    let target = Target::Directory("logs".into());
    let address = IpAddr::from([192, 0, 2, 1]);
    let interval = Duration::from_secs(300);
    let destination = Destination { name: "web".to_owned(), address, target, prefix: String::new(), interval };
    Log::new(destination, in_all.clone(), lost.clone())
}

fn entry(request: &str, agent: &str) -> Entry {
    Entry {
        time: Timestamp::UNIX_EPOCH,
        client: "192.0.2.7:1".parse().expect("an address"),
        backend: None,
        times: [None; 3],
        status: (200, 200),
        bytes: (0, 0),
        request: Some(request.to_owned()),
        agent: Some(agent.to_owned()),
        tls: None,
    }
}

fn kept(log: &Log) -> usize {
    let mut entries = Vec::new();
    log.take(&mut entries);
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
    entries.iter().map(|entry| text(&entry.request) + text(&entry.agent)).sum()
}

#[test]
fn what_clients_write_is_cut_between_letters() {
    let (in_all, lost) = Default::default();
    let log = log(&in_all, &lost);
    log.write(entry(&"\u{fc}".repeat(40_000), "curl"));
    log.write(entry(&format!("a{}", "\u{fc}".repeat(40_000)), &"b".repeat(60_000)));
    let mut entries = Vec::new();
    log.take(&mut entries);
    let lengths: Vec<[usize; 2]> =
        entries.iter().map(|one| [&one.request, &one.agent].map(|text| text.as_ref().map_or(0, String::len))).collect();
    assert_eq!(lengths, [[LONGEST_TEXT, 4], [LONGEST_TEXT - 1, LONGEST_TEXT]]);
}

#[test]
fn lines_that_wait_are_bounded_by_their_bytes_for_each_log_and_in_all() {
    let (in_all, lost) = Default::default();
    let logs: Vec<Log> = (0..8).map(|_| log(&in_all, &lost)).collect();
    let long = "x".repeat(60_000);
    // A client sends 8 x 24 MiB of it while the writer stands still.
    for log in &logs {
        (0..3_000).for_each(|_| log.write(entry(&long, &long)));
    }
    assert!(lost.load(Ordering::Relaxed) > 10_000);
    assert!(in_all.load(Ordering::Relaxed) <= LARGEST_IN_ALL);
    let sizes: Vec<usize> = logs.iter().map(kept).collect();
    assert!(sizes.iter().all(|size| *size as u64 <= LARGEST_QUEUE), "{sizes:?}");
    assert!(sizes.iter().sum::<usize>() as u64 <= LARGEST_IN_ALL, "{sizes:?}");
    // What was taken makes room again.
    assert_eq!(in_all.load(Ordering::Relaxed), 0);
    let before = lost.load(Ordering::Relaxed);
    logs[7].write(entry("GET / HTTP/1.1", "curl"));
    assert_eq!((lost.load(Ordering::Relaxed), kept(&logs[7]) > 0), (before, true));
}
