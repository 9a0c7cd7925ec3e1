//! A connection of bytes is a line in the access log, in the form of AWS' classic load balancers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fairlead_balancer::log::{Destination, Logs, Settings, Target};

use crate::lab::{Server, Wish, ask, engine, in_lab, until};

/// What all files below a folder say.
fn text(folder: &Path) -> String {
    let entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.iter().map(|path| if path.is_dir() { text(path) } else { std::fs::read_to_string(path).unwrap() }).collect()
}

#[test]
fn each_connection_is_a_line_in_the_access_log() {
    in_lab("each_connection_is_a_line_in_the_access_log", || {
        let (spool, bucket) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let logs = Logs::start(Settings { spool: spool.path().to_owned(), ..Settings::default() }).unwrap();
        let log = logs.open(&Destination {
            name: "web".to_owned(),
            address: [127, 0, 0, 1].into(),
            target: Target::Directory(bucket.path().to_owned()),
            prefix: String::new(),
            interval: Duration::from_secs(3600),
        });
        let (engine, echo) = (engine(), Server::echo());
        let wish = Wish { log: Some(log), ..Wish::to(&[echo.at]) };
        wish.serve(&engine);
        assert_eq!(ask(wish.at(), "hello").unwrap(), "hello");
        wish.set(&[]);
        assert!(ask(wish.at(), "hello").is_err());
        until("both are written", || logs.written() == 2);
        let text = text(bucket.path());
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        let served = lines.iter().find(|words| words[3] == echo.at.to_string()).unwrap();
        assert_eq!(
            (served[1], &served[7..]),
            ("web", &["-", "-", "5", "5", "\"-", "-", "-", "\"", "\"-\"", "-", "-"][..])
        );
        for time in &served[4..7] {
            assert!((0.0..1.0).contains(&time.parse::<f64>().unwrap()), "{served:?}");
        }
        let refused = lines.iter().find(|words| words[3] == "-").unwrap();
        assert_eq!(refused[4..7], ["-1", "-1", "-1"]);
    });
}
