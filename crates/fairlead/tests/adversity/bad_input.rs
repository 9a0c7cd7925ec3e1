//! What happens to requests nobody should send? Each is answered in time with a well-formed Status or, if it turns out to be
//! good after all, done; what is refused leaves no trace; and the server lives on.

mod fixed;
mod objects;
mod random;

use std::time::{Duration, Instant};

use fairlead_api::{proto, schema};
use fairlead_testkit::https::connection::{Connection, Raw};
use fairlead_testkit::{Server, full};
use fastrand::Rng;
use serde_json::Value;

use super::{PATIENCE, accounts, server};

/// No answer takes longer, even in a slow build on a busy machine.
const LONGEST: Duration = Duration::from_secs(5);

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: &'static str,
    path: String,
    media: String,
    /// Further headers, each ended by a line break.
    headers: String,
    body: Vec<u8>,
}

impl Request {
    fn new(
        method: &'static str,
        path: impl Into<String>,
        media: impl Into<String>,
        body: impl Into<Vec<u8>>,
    ) -> Request {
        Request { method, path: path.into(), media: media.into(), headers: String::new(), body: body.into() }
    }

    /// Enough of it to send it again.
    fn shown(&self) -> String {
        let body = String::from_utf8_lossy(&self.body);
        let start: String = body.chars().take(800).collect();
        format!("{} {}\n{}: {} bytes\n{}{start:?}", self.method, self.path, self.media, self.body.len(), self.headers)
    }
}

/// The server, and what must not change in it.
struct Court {
    server: Server,
    connection: Connection,
    revision: u64,
}

impl Court {
    fn new() -> Court {
        let server = server(&["--store", "memory"]);
        let connection = server.client().connect(PATIENCE).expect("the server listens");
        let mut court = Court { server, connection, revision: 0 };
        for (path, object) in objects::kept() {
            let request = Request::new("POST", path, "application/json", object.to_string());
            assert_eq!(court.send(&request).status, 201, "{}", request.shown());
        }
        court.revision = court.newest();
        court
    }

    /// Sends a request and holds the answer to the rules. Gives whether the server did as asked.
    fn try_one(&mut self, request: &Request) -> bool {
        let began = Instant::now();
        let answer = self.send(request);
        assert!(began.elapsed() < LONGEST, "{:?} for {}", began.elapsed(), request.shown());
        let done = answer.status < 300;
        if !done {
            assert_refused(request, &answer);
        }
        if done && request.method != "GET" && !request.path.contains("dryRun") {
            self.read_back(request, &answer);
            self.revision = self.newest();
        } else {
            let now = self.newest();
            assert_eq!(now, self.revision, "something was stored by {}", request.shown());
        }
        done
    }

    fn send(&mut self, request: &Request) -> Raw {
        let Request { method, path, media, headers, body } = request;
        let length = body.len();
        let head = format!("Content-Type: {media}\r\nContent-Length: {length}\r\n{headers}");
        let answer = self.connection.exchange(method, path, &head, body).unwrap_or_else(|error| {
            panic!("{error} for {}\n{}", request.shown(), self.server.log());
        });
        let closes = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        // What was not read of a body that is too large cannot be told from the next request.
        if closes || length > 1 << 20 {
            self.connection = self.server.client().connect(PATIENCE).expect("the server listens");
        }
        answer
    }

    /// The newest revision there is.
    fn newest(&mut self) -> u64 {
        let list = Request::new("GET", "/api/v1/namespaces?limit=1", "application/json", "");
        accounts::revision(&self.send(&list).json())
    }

    /// What was taken in can be shown in every form, and deleted.
    fn read_back(&mut self, request: &Request, answer: &Raw) {
        let object = answer.json();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if name.is_empty() || request.method == "DELETE" {
            return;
        }
        let base = request.path.split('?').next().unwrap_or_default();
        let path = if request.method == "POST" { format!("{base}/{name}") } else { base.to_owned() };
        for form in
            ["application/json", "application/vnd.kubernetes.protobuf", "application/json;as=Table;v=v1;g=meta.k8s.io"]
        {
            let mut read = Request::new("GET", &path, "application/json", "");
            read.headers = format!("Accept: {form}\r\n");
            let found = self.send(&read);
            // A review is answered and not kept; what was marked for deletion may be gone with its last finalizer.
            // A role may have a name that is longer than a URL can be.
            assert!(
                matches!(found.status, 200 | 404 | 405 | 414),
                "{form} after {}: {}",
                request.shown(),
                found.status
            );
        }
        if request.method == "POST" {
            let delete = Request::new("DELETE", format!("{path}?gracePeriodSeconds=0"), "application/json", "");
            let deleted = self.send(&delete);
            assert!(deleted.status < 500, "{}: {}", request.shown(), String::from_utf8_lossy(&deleted.body));
        }
    }

    /// The server is well.
    fn close(mut self) {
        let ready = self.send(&Request::new("GET", "/readyz", "application/json", ""));
        assert_eq!(ready.status, 200);
        let log = self.server.log();
        assert!(!log.contains("panicked"), "{log}");
    }
}

/// A refusal is a Status that says the same as the answer's code, and blames the client, save where kube-apiserver does not.
fn assert_refused(request: &Request, answer: &Raw) {
    let shown = || format!("{}\n{}", request.shown(), String::from_utf8_lossy(&answer.body));
    let status = read(answer);
    assert!((400..600).contains(&answer.status), "{}: {}", answer.status, shown());
    if status["kind"] != "Status" {
        // Some mistakes are found before anybody knows what was wanted; a page in plain text is what the reference gives, too.
        assert!(answer.status == 404 || answer.status == 406, "{}", shown());
        return;
    }
    assert_eq!(status["apiVersion"], "v1", "{}", shown());
    assert_eq!(status["status"], "Failure", "{}", shown());
    assert_eq!(status["code"], answer.status, "{}", shown());
    assert!(status["message"].is_string(), "{}", shown());
    if answer.status >= 500 {
        assert!(fixed::is_known_fault(request, &status), "{}", shown());
    }
}

#[test]
fn what_is_known_to_be_bad_is_refused_with_its_status() {
    let mut court = Court::new();
    let mut wrong = String::new();
    for (expected, request) in fixed::cases() {
        let began = Instant::now();
        let answer = court.send(&request);
        if began.elapsed() > LONGEST {
            wrong += &format!("{:?} for {:.500}\n\n", began.elapsed(), request.shown());
        }
        if answer.status != expected {
            let start: String = String::from_utf8_lossy(&answer.body).chars().take(300).collect();
            wrong += &format!("{expected} expected, not {} {start}\nfor {:.500}\n\n", answer.status, request.shown());
            continue;
        }
        assert_refused(&request, &answer);
        assert_eq!(court.newest(), court.revision, "something was stored by {}", request.shown());
    }
    assert!(wrong.is_empty(), "{wrong}");
    court.close();
}

#[test]
#[allow(clippy::print_stdout, reason = "a failure is to be had again with the same seed")]
fn whatever_is_sent_is_answered_and_what_is_refused_leaves_no_trace() {
    let seed = std::env::var("FAIRLEAD_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("FAIRLEAD_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let count = if full() { 30_000 } else { 3_000 };
    let mut court = Court::new();
    let mut done = 0;
    for _ in 0..count {
        let request = random::request(&mut random);
        done += usize::from(court.try_one(&request));
    }
    println!("{done} of {count} requests were good after all");
    court.close();
}

/// The object in an answer, whatever form it has.
fn read(answer: &Raw) -> Value {
    match answer.header("content-type") {
        Some("application/yaml") => {
            let text = std::str::from_utf8(&answer.body).unwrap_or_default();
            serde_saphyr::from_str(text).unwrap_or_default()
        }
        Some(form) if form.starts_with("application/vnd.kubernetes.protobuf") => {
            let Ok(envelope) = proto::unwrap(&answer.body) else { return Value::Null };
            let mut status = proto::read(&schema::meta::STATUS, envelope.raw).unwrap_or_default();
            status["kind"] = envelope.kind.into();
            status["apiVersion"] = envelope.api_version.into();
            status.into()
        }
        _ => answer.json(),
    }
}
