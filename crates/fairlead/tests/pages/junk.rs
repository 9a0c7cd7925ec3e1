//! Nonsense from outside is refused with a sentence, and hurts nobody.

use fairlead_testkit::Server;
use serde_json::json;

use crate::browser::{PROGRAM, login, read, sign_in, stranger, text};

#[test]
fn junk_in_paths_and_queries_is_refused_with_a_sentence() {
    let server = Server::start(PROGRAM, &[]);
    let browser = sign_in(&server, false);
    let long = "a".repeat(5000);
    for (path, code) in [
        ("", 404),
        ("nothing", 404),
        ("services/", 404),
        ("services/a", 404),
        ("services//b", 404),
        ("services/a/b/c", 404),
        ("services/default/no%2Fsuch", 404),
        ("services?watch=1&since=x", 400),
        ("services?watch=1&since=-1", 400),
        ("services?watch=1&since=99999999999999999999", 400),
        ("services?watch=1&since=1", 410),
        ("services?watch=1&since=18446744073709551615", 410),
        ("explain", 400),
        ("explain?name=kubernetes&from=svc/x", 400),
        ("explain?name=kubernetes&port=80/HTTP", 400),
        ("explain?name=kubernetes&from=pod/nobody", 404),
        ("trace", 400),
        ("trace?from=node", 400),
        ("trace?from=x&to=y", 400),
        ("trace?from=node&to=10.0.0.1", 400),
        ("dns", 400),
        ("dns?name=web&type=AXFR", 400),
        ("dns?name=web&from=svc/web", 400),
        ("dns?name=web&from=pod/nobody", 404),
        (&format!("dns?name={long}"), 400),
        (&format!("services/{long}/{long}"), 404),
    ] {
        let (found, message) = browser.try_get(&format!("/fairlead/v1/{path}"));
        assert_eq!(found, code, "{path}: {message}");
        assert_ne!(message, "", "{path}");
    }
    for method in ["PUT", "DELETE", "PATCH"] {
        let answer = server.client().request(method, "/fairlead/v1/services", "").unwrap();
        assert_eq!(answer.status, 405, "{method}");
    }
}

#[test]
fn junk_cookies_and_tokens_sign_nobody_in() {
    let server = Server::start(PROGRAM, &[]);
    let letters = "a".repeat(43);
    for cookie in
        ["__Host-fairlead=", "__Host-fairlead=x", "__Host-fairlead", "=;=;;", &format!("__Host-fairlead={letters}")]
    {
        let client = stranger(&server).with_header("Cookie", cookie);
        let answer = client.get("/fairlead/v1/session").unwrap();
        assert_eq!(answer.status, 401, "{cookie}");
        assert_eq!(client.get("/api/v1/services").unwrap().status, 401, "{cookie}");
        assert_eq!(client.get("/readyz").unwrap().status, 200, "{cookie}");
    }
    for token in ["", "x", &letters] {
        let answer = login(&stranger(&server), token);
        assert_eq!(answer.status, 401, "{token}");
        assert!(text(&read(&answer), "message").contains("fairlead ui"));
    }
    let long = json!({"token": "a".repeat(4096)}).to_string();
    for (body, code) in [("", 400), ("{", 400), ("[]", 401), ("{\"token\": 7}", 401), (&long, 413)] {
        let answer = stranger(&server).request("POST", "/ui/login", body).unwrap();
        assert_eq!(answer.status, code, "{body}");
    }
    // What nobody wants is not kept either.
    let huge = "a".repeat(4 << 20);
    for (path, code) in [("/ui/nothing", 405), ("/ui/", 405), ("/ui/logout", 204)] {
        let answer = stranger(&server).request("POST", path, &huge).unwrap();
        assert_eq!(answer.status, code, "{path}: {}", answer.body);
    }
    for body in ["{", "{\"write\": 1}", "{\"write\": \"yes\"}"] {
        let answer = server.client().request("POST", "/fairlead/v1/links", body).unwrap();
        assert_eq!(answer.status, 400, "{body}");
    }
}
