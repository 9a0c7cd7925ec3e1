//! A client that lists and watches as informers do, and objects to anything an informer could not make sense of: events out of
//! order, twice, or of objects that cannot be.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use fairlead_testkit::https::Client;
use fairlead_testkit::https::connection::{Lines, Raw};
use serde_json::Value;

use super::PATIENCE;
use super::accounts::{self, Objects};

/// How long one watch lasts before the mirror opens the next: short, so that going on is tried often.
const WATCH_SECONDS: u64 = 10;
/// How long a server may fail before the mirror gives up.
const OUTAGE: Duration = Duration::from_secs(90);

/// All Services, as events tell.
#[derive(Debug)]
pub(crate) struct Mirror {
    client: Client,
    pub(crate) objects: Objects,
    pub(crate) revision: u64,
    /// How often a watch went on where another had ended.
    pub(crate) resumed: usize,
    /// How often a watch was refused with 410, and the list read again.
    pub(crate) relisted: usize,
}

/// How a watch ended.
enum End {
    /// The event waited for has come.
    Seen,
    /// To be gone on with from the last revision.
    Over,
    /// The revision is too old.
    Expired,
}

impl Mirror {
    /// Lists.
    pub(crate) fn new(client: Client) -> Mirror {
        let (objects, revision) = accounts::list(&client, "/api/v1/services");
        Mirror { client, objects, revision, resumed: 0, relisted: 0 }
    }

    /// Follows until a Service of that name is there, through whatever befalls the server meanwhile.
    pub(crate) fn until(&mut self, name: &str) {
        let mut deadline = Instant::now() + OUTAGE;
        while !self.objects.contains_key(name) {
            assert!(Instant::now() < deadline, "no watch can be had for {OUTAGE:?}");
            let lines = match self.watch() {
                Ok(Ok(lines)) => lines,
                Ok(Err(refusal)) => {
                    self.refused(&refusal);
                    continue;
                }
                Err(error) => panic!("a watch gets no answer: {error}"),
            };
            deadline = Instant::now() + OUTAGE;
            match self.apply(lines, |mirror| mirror.objects.contains_key(name)) {
                End::Seen => return,
                End::Over => self.resumed += 1,
                End::Expired => self.relist(),
            }
        }
    }

    /// Follows until the server is gone.
    pub(crate) fn until_cut(&mut self) {
        while let Ok(Ok(lines)) = self.watch() {
            let _ = self.apply(lines, |_| false);
        }
    }

    /// Follows a server that has come back until the mirror is as new as `revision`; false if it has to list again.
    pub(crate) fn catch_up(&mut self, revision: u64) -> bool {
        if self.revision >= revision {
            return true;
        }
        match self.watch().expect("the server answers") {
            Ok(lines) => match self.apply(lines, |mirror| mirror.revision >= revision) {
                End::Seen | End::Over => true,
                End::Expired => false,
            },
            Err(refusal) => {
                assert_eq!(refusal.status, 410, "{}", String::from_utf8_lossy(&refusal.body));
                false
            }
        }
    }

    /// Forgets everything and lists.
    pub(crate) fn relist(&mut self) {
        let (objects, revision) = loop {
            let answer = self.client.get("/api/v1/services").expect("the server answers");
            if answer.status == 200 {
                break accounts::read_list(&answer.body);
            }
            assert!(answer.status >= 500, "{}", answer.body);
            thread::sleep(Duration::from_millis(100));
        };
        assert!(revision >= self.revision, "revision {revision} after {}", self.revision);
        (self.objects, self.revision) = (objects, revision);
        self.relisted += 1;
    }

    fn watch(&self) -> io::Result<Result<Lines, Raw>> {
        let revision = self.revision;
        let path = format!(
            "/api/v1/services?watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={revision}"
        );
        self.client.connect(PATIENCE)?.follow(&path)
    }

    fn refused(&mut self, refusal: &Raw) {
        match refusal.status {
            410 => self.relist(),
            500.. => thread::sleep(Duration::from_millis(100)),
            _ => panic!("{}", String::from_utf8_lossy(&refusal.body)),
        }
    }

    fn apply(&mut self, lines: Lines, done: impl Fn(&Mirror) -> bool) -> End {
        for line in lines {
            let Ok(line) = line else { return End::Over };
            let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if event["type"] == "ERROR" {
                assert_eq!(event["object"]["kind"], "Status", "{line}");
                assert_eq!(event["object"]["code"], 410, "{line}");
                return End::Expired;
            }
            self.event(&event);
            if done(self) {
                return End::Seen;
            }
        }
        End::Over
    }

    fn event(&mut self, event: &Value) {
        let object = &event["object"];
        let revision = accounts::revision(object);
        let before = std::mem::replace(&mut self.revision, revision);
        let name = accounts::name(object);
        let kind = event["type"].as_str().unwrap_or_default();
        if kind == "BOOKMARK" {
            assert!(revision >= before, "a bookmark of {revision} after {before}");
            return;
        }
        assert!(revision > before, "{kind} {name} at {revision} after {before}");
        let known = match kind {
            "DELETED" => self.objects.remove(&name),
            _ => self.objects.insert(name.clone(), accounts::plain(object)),
        };
        assert_eq!(known.is_some(), kind != "ADDED", "{kind} {name} at {revision}");
    }
}
