//! The audit log: what a line says, when a new file begins, what happens when nobody writes.

use std::path::Path;

use fairlead_api::value::{Value, json};

use super::*;

fn event<'a>(id: &'a str, user: &'a User) -> Event<'a> {
    let time = Timestamp::from_microsecond(1_800_000_000_123_456).expect("a time");
    Event {
        id,
        uri: "/api/v1/namespaces/a/services?limit=1",
        verb: "list",
        user,
        impersonated: None,
        source: Some([127, 0, 0, 1].into()),
        user_agent: "kubectl",
        object: json!({"resource": "services", "namespace": "a", "apiVersion": "v1"}),
        code: 200,
        failure: None,
        annotations: &[("authorization.k8s.io/decision", "allow")],
        received: time,
        answered: time,
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_line_says_who_did_what() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.log");
    let user = User { name: "ann".to_owned(), groups: vec!["devs".to_owned()], ..User::default() };
    let audit = Audit::open(Options { path: path.clone(), max_size: 0, max_backup: 0 }).expect("a log");
    audit.log(&event("1", &user));
    audit.log(&Event { code: 403, failure: Some(("Forbidden", "no")), object: Value::Null, ..event("2", &user) });
    drop(audit);
    let lines = lines(&path);
    let expected = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "1", "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/a/services?limit=1", "verb": "list",
        "user": {"username": "ann", "groups": ["devs"]}, "sourceIPs": ["127.0.0.1"], "userAgent": "kubectl",
        "objectRef": {"resource": "services", "namespace": "a", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": "2027-01-15T08:00:00.123456Z", "stageTimestamp": "2027-01-15T08:00:00.123456Z",
        "annotations": {"authorization.k8s.io/decision": "allow"},
    });
    assert_eq!(lines[0], expected);
    let failed = json!({"metadata": {}, "status": "Failure", "message": "no", "reason": "Forbidden", "code": 403});
    assert_eq!(lines[1]["responseStatus"], failed);
    assert!(lines[1].get("objectRef").is_none());
}

#[test]
fn a_full_file_makes_room_and_old_ones_go() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.log");
    std::fs::write(dir.path().join("audit-mine.log"), "keep").expect("a file");
    let user = User::anonymous();
    let size = event("0", &user).json().to_string().len() as u64 + 1;
    let audit = Audit::open(Options { path: path.clone(), max_size: size * 2, max_backup: 2 }).expect("a log");
    for id in 0..9 {
        audit.log(&event(&id.to_string(), &user));
    }
    assert_eq!(audit.dropped(), 0);
    drop(audit);
    let mut files: Vec<_> =
        std::fs::read_dir(dir.path()).expect("a directory").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    let ids: Vec<Vec<String>> = files[..2]
        .iter()
        .map(|file| lines(file).iter().map(|line| line["auditID"].as_str().expect("text").to_owned()).collect())
        .collect();
    assert_eq!(ids, [["4", "5"], ["6", "7"]]);
    assert_eq!(files[2..], [dir.path().join("audit-mine.log"), path.clone()]);
    assert_eq!(lines(&path)[0]["auditID"], "8");
}

#[test]
fn an_open_log_goes_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("audit.log");
    for id in ["1", "2"] {
        let audit = Audit::open(Options { path: path.clone(), max_size: 0, max_backup: 0 }).expect("a log");
        audit.log(&event(id, &User::anonymous()));
    }
    assert_eq!(lines(&path).len(), 2);
}

#[test]
fn events_without_room_are_counted() {
    let (queue, events) = sync_channel(1);
    let shared = Shared { queue: Mutex::new(Some(queue)), dropped: AtomicU64::new(0), writer: Mutex::new(None) };
    let audit = Audit { shared: Arc::new(shared) };
    for _ in 0..3 {
        audit.log(&event("1", &User::anonymous()));
    }
    assert_eq!(audit.dropped(), 2);
    drop(events);
    audit.log(&event("1", &User::anonymous()));
    assert_eq!(audit.dropped(), 3);
}

#[test]
fn a_log_that_cannot_be_opened_is_said_at_once() {
    let options = Options { path: "/nowhere/audit.log".into(), max_size: 0, max_backup: 0 };
    assert!(Audit::open(options).is_err());
}
