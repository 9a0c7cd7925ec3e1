//! Signing in and out: a link works once, and a cookie is worth something only where it was given.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fairlead_testkit::https::Client;
use fairlead_testkit::{Server, need::need};
use serde_json::json;

use crate::browser::{PROGRAM, PROOF, header, login, read, sign_in, signed_in, stranger, text, token};

const USED: &str = "this link was used already or is too old: `fairlead ui` prints a new one";

#[test]
fn a_link_works_once_and_gives_a_cookie_that_only_this_server_gets() {
    let server = Server::start(PROGRAM, &[]);
    let token = token(&server, false);
    let signed = login(&stranger(&server), &token);
    assert_eq!((signed.status, header(&signed, "cache-control").as_deref()), (200, Some("no-store")));
    let set = header(&signed, "set-cookie").unwrap();
    let attributes: Vec<&str> = set.split("; ").skip(1).collect();
    assert!(set.starts_with("__Host-fairlead="), "{set}");
    assert_eq!(attributes, ["Path=/", "Secure", "HttpOnly", "SameSite=Strict", "Max-Age=43200"]);

    let again = login(&stranger(&server), &token);
    assert_eq!((again.status, text(&read(&again), "message")), (401, USED.to_owned()));
    assert_eq!(header(&again, "set-cookie"), None);

    let session = sign_in(&server, false).get("/fairlead/v1/session");
    assert_eq!((&session["user"], &session["write"]), (&json!("fairlead:ui"), &json!(false)));
    assert_eq!(session["version"], env!("CARGO_PKG_VERSION"));
    assert!(text(&session, "expires").ends_with('Z'), "{session}");
    assert_eq!(text(&session, "domain"), "cluster.local");
    assert_eq!(session["csrf"], json!(null));
}

#[test]
fn who_got_a_cookie_at_another_port_of_the_host_has_nothing() {
    let server = Server::start(PROGRAM, &[]);
    let (browser, other) = (sign_in(&server, true), sign_in(&server, true));
    let wrong = browser.bare.with_header(PROOF, &other.proof);
    for path in ["/fairlead/v1/session", "/fairlead/v1/services", "/api/v1/services", "/api"] {
        let alone = browser.bare.get(path).unwrap();
        assert_eq!((alone.status, alone.body.contains(PROOF)), (401, true), "{path}: {}", alone.body);
        assert_eq!(wrong.get(path).unwrap().status, 401, "{path}");
        assert_eq!(browser.client.get(path).unwrap().status, 200, "{path}");
        // Another port is the same site.
        for (name, value) in [("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Site", "cross-site"), ("Origin", "null")] {
            let foreign = browser.client.with_header(name, value).get(path).unwrap();
            assert_eq!(foreign.status, 403, "{path}, {name}: {value}");
        }
    }
    assert_eq!(browser.bare.get("/readyz").unwrap().status, 200, "as for everybody");
    assert_eq!(browser.bare.request("POST", "/ui/logout", "").unwrap().status, 403);
    assert_eq!(browser.client.get("/fairlead/v1/session").unwrap().status, 200, "still signed in");
}

#[test]
fn a_session_ends_when_its_browser_says_so() {
    let server = Server::start(PROGRAM, &[]);
    let (leaving, staying) = (sign_in(&server, false), sign_in(&server, false));
    let out = leaving.send("POST", "/ui/logout", &json!({}));
    assert_eq!(out.status, 204, "{}", out.body);
    assert!(header(&out, "set-cookie").unwrap().contains("Max-Age=0"));
    let (code, message) = leaving.try_get("/fairlead/v1/session");
    assert_eq!((code, message.contains("`fairlead ui` prints a new link")), (401, true), "{message}");
    assert_eq!(leaving.client.get("/api/v1/services").unwrap().status, 401);
    assert_eq!(staying.client.get("/fairlead/v1/session").unwrap().status, 200);
}

#[test]
fn other_credentials_count_more_than_a_cookie() {
    let server = Server::start(PROGRAM, &[]);
    let browser = sign_in(&server, false);
    let wrong = browser.client.with_token("wrong");
    assert_eq!(wrong.get("/fairlead/v1/session").unwrap().status, 401);
    let admin = browser.client.with_token(fairlead_testkit::server::ADMIN_TOKEN);
    let session = read(&admin.get("/fairlead/v1/session").unwrap());
    assert_eq!(
        (&session["user"], &session["expires"], &session["write"]),
        (&json!("admin"), &json!(null), &json!(true))
    );
    assert_eq!(
        admin.get("/api/v1/secrets").unwrap().status,
        200,
        "the administrator is not held to what a session may"
    );
}

#[test]
fn without_a_session_there_is_no_data() {
    let server = Server::start(PROGRAM, &[]);
    for path in
        ["session", "services", "services?watch=1", "services/default/kubernetes", "traffic", "nodes", "nothing"]
    {
        let answer = stranger(&server).get(&format!("/fairlead/v1/{path}")).unwrap();
        assert_eq!(answer.status, 401, "{path}");
    }
    assert_eq!(stranger(&server).request("POST", "/fairlead/v1/links", "{}").unwrap().status, 401);
}

#[test]
fn another_site_cannot_sign_somebody_in() {
    let server = Server::start(PROGRAM, &[]);
    let token = token(&server, false);
    for (name, value) in [("Origin", "https://evil.test"), ("Sec-Fetch-Site", "cross-site")] {
        assert_eq!(login(&stranger(&server).with_header(name, value), &token).status, 403, "{name}");
    }
    let own = format!("https://{}", stranger(&server).address());
    assert_eq!(login(&stranger(&server).with_header("Origin", &own), &token).status, 200);
}

#[test]
fn the_command_prints_a_link_that_works() {
    let server = Server::start(PROGRAM, &[]);
    for (flags, write) in [(&[][..], false), (&["--write"][..], true)] {
        let mut command = Command::new(PROGRAM);
        let said = command.arg("ui").args(flags).arg("--kubeconfig").arg(server.kubeconfig()).output().unwrap();
        let printed = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let token = printed.trim().strip_prefix(&format!("{}/ui/#token=", server.url())).expect(&printed);
        assert_eq!(signed_in(&server, token).get("/fairlead/v1/session")["write"], write);
    }
}

#[test]
fn a_link_is_shown_at_a_terminal_and_nowhere_else() {
    let test = "a_link_is_shown_at_a_terminal_and_nowhere_else";
    let piped = Server::start(PROGRAM, &[]);
    assert!(piped.announcement().contains("Its page: run `fairlead ui` for a link.\n"), "{}", piped.announcement());
    assert!(!piped.announcement().contains("token"), "{}", piped.announcement());
    if !need(test, "script") {
        return;
    }
    let (dir, started) = (tempfile::tempdir().unwrap(), Instant::now());
    let data = dir.path().join("data");
    // It ends with its terminal.
    let line = format!("exec {PROGRAM} server --secure-port 0 --data-dir {}", data.display());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut terminal = command.spawn().unwrap();
    let lines = BufReader::new(terminal.stdout.take().unwrap()).lines().map_while(Result::ok);
    let printed: Vec<String> = lines.take_while(|line| !line.starts_with("kubectl")).collect();
    let shown = printed.iter().find_map(|line| line.trim().strip_prefix("Its page, once: ")?.split_once("/ui/#token="));
    let (url, token) = shown.unwrap_or_else(|| panic!("no link after {:?}: {printed:?}", started.elapsed()));
    let authority = std::fs::read(data.join("pki/ca.crt")).unwrap();
    let client = Client::new(url.strip_prefix("https://").unwrap().parse().unwrap(), &authority, "");
    let codes = [login(&client, token).status, login(&client, token).status];
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    assert_eq!(codes, [200, 401]);
}

#[test]
fn the_audit_log_sees_sessions_but_no_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let server = Server::start(PROGRAM, &["--audit-log-path", &log.display().to_string()]);
    let browser = sign_in(&server, false);
    browser.get("/fairlead/v1/services");
    browser.get("/api/v1/services");
    // A thread of its own writes it.
    let deadline = Instant::now() + Duration::from_secs(30);
    let text = loop {
        let text = std::fs::read_to_string(&log).unwrap();
        if text.contains("\"/api/v1/services\"") && text.ends_with('\n') {
            break text;
        }
        assert!(Instant::now() < deadline, "{text}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let events: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen = |path: &str, user: &str| {
        events.iter().any(|event| event["requestURI"] == path && event["user"]["username"] == user)
    };
    assert!(seen("/ui/login", "system:anonymous"), "{text}");
    assert!(seen("/fairlead/v1/services", "fairlead:ui"), "{text}");
    assert!(seen("/api/v1/services", "fairlead:ui"), "{text}");
    assert!(!text.contains(&browser.proof));
}
