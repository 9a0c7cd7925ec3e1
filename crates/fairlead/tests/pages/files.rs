//! The files of the page: there for everybody, whole, and with everything said that keeps a browser from being misled.

use std::path::{Path, PathBuf};
use std::process::Command;

use fairlead_testkit::need::need;
use fairlead_testkit::{ADMIN_TOKEN, Server};

use crate::browser::{PROGRAM, header, stranger};

const CAREFUL: [(&str, &str); 4] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path => found.push(path),
        }
    }
}

#[test]
fn every_file_is_there_with_its_type_and_every_answer_is_careful() {
    let server = Server::start(PROGRAM, &[]);
    let client = stranger(&server);
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let mut found = Vec::new();
    files(&web, &mut found);
    assert!(!found.is_empty());
    let mut paths: Vec<String> =
        found.iter().map(|file| format!("/ui/{}", file.strip_prefix(&web).unwrap().display())).collect();
    for (path, file) in paths.iter().zip(&found) {
        let answer = client.get(path).unwrap();
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.body, String::from_utf8_lossy(&std::fs::read(file).unwrap()), "{path}");
        let kind = header(&answer, "content-type").unwrap();
        let expected = match file.extension().unwrap().to_str().unwrap() {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            other => panic!("say which type {other} has"),
        };
        assert_eq!(kind, expected, "{path}");
    }
    paths
        .extend(["/ui/", "/ui", "/ui/nothing.js", "/ui/../secret", "/ui/login", "/ui//", "/ui/%00"].map(str::to_owned));
    for path in &paths {
        let answer = client.get(path).unwrap();
        for (name, value) in CAREFUL {
            assert_eq!(header(&answer, name).as_deref(), Some(value), "{name} of {path}");
        }
    }
}

#[test]
fn the_page_begins_at_a_slash_and_what_is_known_is_not_sent_again() {
    let server = Server::start(PROGRAM, &[]);
    let client = stranger(&server);
    let moved = client.get("/ui").unwrap();
    assert_eq!((moved.status, header(&moved, "location").as_deref()), (308, Some("/ui/")));
    let page = client.get("/ui/").unwrap();
    assert_eq!(page.body, client.get("/ui/index.html").unwrap().body);
    assert_eq!(header(&page, "cache-control").as_deref(), Some("no-cache"));
    let etag = header(&page, "etag").unwrap();
    let known = client.with_header("If-None-Match", &etag).get("/ui/").unwrap();
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    assert_eq!(client.with_header("If-None-Match", "\"other\"").get("/ui/").unwrap().status, 200);
    let packed = client.with_header("Accept-Encoding", "gzip").get("/ui/").unwrap();
    assert_eq!(header(&packed, "content-encoding").as_deref(), Some("gzip"));
    assert!(packed.body.len() < page.body.len());
}

#[test]
fn what_is_no_file_is_an_error_that_says_so() {
    let server = Server::start(PROGRAM, &[]);
    let client = stranger(&server);
    for (method, path, code) in [
        ("GET", "/ui/nothing.js", 404),
        ("GET", "/ui/../api/v1/services", 404),
        ("GET", "/ui/%2e%2e/etc/passwd", 404),
        ("GET", "/uix", 401),
        ("GET", "/ui/login", 405),
        ("POST", "/ui/", 405),
        ("DELETE", "/ui/index.html", 405),
        ("POST", "/ui/nothing", 405),
    ] {
        assert_eq!(client.request(method, path, "").unwrap().status, code, "{method} {path}");
    }
}

#[test]
fn head_is_answered_without_a_body_by_either_version_of_http() {
    let test = "head_is_answered_without_a_body_by_either_version_of_http";
    if !need(test, "curl") {
        return;
    }
    let server = Server::start(PROGRAM, &[]);
    for (version, path) in [("--http2", "/ui/"), ("--http1.1", "/ui/"), ("--http2", "/readyz"), ("--http2", "/version")]
    {
        let url = format!("{}{path}", server.url());
        // Anonymous may read paths such as these, but HEAD is a verb of its own.
        let sent = ["-skI", version, "-H", &format!("Authorization: Bearer {ADMIN_TOKEN}"), &url];
        let output = Command::new("curl").args(sent).output().unwrap();
        let head = String::from_utf8_lossy(&output.stdout).to_lowercase();
        assert!(output.status.success(), "{version} {path}: {:?}", output.status);
        assert!(head.starts_with("http/") && head.contains(" 200"), "{version} {path}: {head}");
        assert!(head.contains("content-length: ") && !head.contains("content-length: 0"), "{version} {path}: {head}");
    }
}
