//! Who sends a request, by certificate, token file, or not at all; and whom they may act as.

use fairlead_api::value::Value;
use fairlead_api::{Failure, Kind};
use futures_util::future::BoxFuture;
use http::Request;
use rbac::{Attributes, Decision};

use super::token_file::TokenFile;
use super::*;

struct Nothing;

impl Objects for Nothing {
    fn find<'a>(
        &'a self,
        _kind: &'static Kind,
        _namespace: &'a str,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, Failure>> {
        Box::pin(async { Ok(None) })
    }
}

fn request(path: &str, headers: &[(&str, &str)]) -> Parts {
    let mut builder = Request::builder().uri(path);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(()).expect("a request").into_parts().0
}

const TOKENS: &str = "# name\nsecret, ann ,42,\"devs,ops\"\n\"a,b\",bob,43\n\"q\"\"q\",cid,44,solo\n";

#[tokio::test]
async fn a_request_is_its_senders() {
    let table: &[(Anonymous, &str, &str, Result<&str, u16>)] = &[
        (Anonymous::Health, "/api/v1/pods", "Bearer secret", Ok("ann")),
        (Anonymous::Health, "/api/v1/pods", "bearer secret", Ok("ann")),
        (Anonymous::Health, "/api/v1/pods", "Bearer a,b", Ok("bob")),
        (Anonymous::Health, "/api/v1/pods", "Bearer q\"q", Ok("cid")),
        (Anonymous::Health, "/api/v1/pods", "Bearer secre", Err(401)),
        (Anonymous::Health, "/api/v1/pods", "Basic secret", Err(401)),
        (Anonymous::Health, "/api/v1/pods", "", Err(401)),
        (Anonymous::Health, "/readyz", "", Ok(ANONYMOUS)),
        (Anonymous::Health, "/readyz?verbose", "", Ok(ANONYMOUS)),
        (Anonymous::Health, "/readyz", "Bearer wrong", Err(401)),
        (Anonymous::Health, "/readyz/ping", "", Err(401)),
        (Anonymous::Health, "/version", "", Ok(ANONYMOUS)),
        (Anonymous::Nowhere, "/readyz", "", Err(401)),
        (Anonymous::Everywhere, "/api/v1/pods", "", Ok(ANONYMOUS)),
        (Anonymous::Everywhere, "/api/v1/pods", " ", Ok(ANONYMOUS)),
        (Anonymous::Everywhere, "/api/v1/pods", "Bearer ", Err(401)),
        (Anonymous::Everywhere, "/api/v1/pods", "Bearer  secret", Err(401)),
        (Anonymous::Everywhere, "/api/v1/pods", "Bearer", Err(401)),
        (Anonymous::Everywhere, "/api/v1/pods", "Basic YWRtaW46YWRtaW4=", Err(401)),
        (Anonymous::Everywhere, "/api/v1/pods", "basic", Err(401)),
        (Anonymous::Everywhere, "/api/v1/pods", "Negotiate secret", Err(401)),
        (Anonymous::Everywhere, "/api/v1/pods", "Bearersecret", Err(401)),
        (Anonymous::Everywhere, "/api/v1/pods", "secret", Err(401)),
        (Anonymous::Health, "/readyz", "Basic secret", Err(401)),
    ];
    for (anonymous, path, authorization, expected) in table {
        let tokens = TokenFile::parse(TOKENS).expect("a good file");
        let authenticator = Authenticator { tokens, anonymous: *anonymous, ..Authenticator::default() };
        let headers: &[(&str, &str)] = if authorization.is_empty() { &[] } else { &[("authorization", authorization)] };
        let found = authenticator.authenticate(&request(path, headers), &Nothing, Timestamp::UNIX_EPOCH).await;
        let found = found.map(|user| user.name).map_err(|failure| failure.code);
        assert_eq!(found, expected.map(str::to_owned), "{anonymous:?} {path} {authorization}");
    }
}

#[tokio::test]
async fn two_authorization_headers_are_nobodys() {
    let tokens = TokenFile::parse(TOKENS).expect("a good file");
    let authenticator = Authenticator { tokens, anonymous: Anonymous::Everywhere, ..Authenticator::default() };
    let request = request("/", &[("authorization", "Bearer secret"), ("authorization", "Basic secret")]);
    let failure = authenticator.authenticate(&request, &Nothing, Timestamp::UNIX_EPOCH).await.unwrap_err();
    assert_eq!(failure.code, 401);
}

#[tokio::test]
async fn a_known_sender_is_authenticated() {
    let tokens = TokenFile::parse(TOKENS).expect("a good file");
    let authenticator = Authenticator { tokens, ..Authenticator::default() };
    let request = request("/", &[("authorization", "Bearer secret")]);
    let user = authenticator.authenticate(&request, &Nothing, Timestamp::UNIX_EPOCH).await.expect("ann");
    assert_eq!(user.groups, ["devs", "ops", AUTHENTICATED]);
    assert_eq!(user.uid, "42");
    let failure = unauthorized();
    let status = fairlead_api::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
        "reason": "Unauthorized", "code": 401,
    });
    assert_eq!(failure.status(), status);
}

#[test]
fn a_bad_token_file_names_the_line() {
    let table = [
        ("a,b", "line 1: token, user name and user uid are needed, found 2 columns"),
        ("a,b,c\n,b,c", "line 2: the token is empty"),
        ("\na,b,c,\"d", "line 2: a quoted column does not end"),
    ];
    for (text, message) in table {
        assert_eq!(TokenFile::parse(text).expect_err("a bad file").to_string(), message);
    }
}

type Headers = &'static [(&'static str, &'static str)];

/// Acts as whoever the headers say, allowed for names that do not begin with `no-`. `name groups uid extra`, or the message.
#[track_caller]
fn check(headers: Headers, expected: Result<&str, &str>) {
    let authorize = |_: &User, attributes: &Attributes<'_>| match attributes.target {
        rbac::Target::Resource { name, .. } if name.starts_with("no-") => Decision::Deny { reason: String::new() },
        _ => Decision::Allow { reason: String::new() },
    };
    let sender = User { name: "ann".to_owned(), ..User::default() };
    let found = impersonation::impersonate(&request("/", headers).headers, &sender, authorize);
    let found = found
        .map(|user| user.map_or("itself".to_owned(), |u| format!("{} {:?} {} {:?}", u.name, u.groups, u.uid, u.extra)));
    let found = found.map_err(|failure| failure.message);
    assert_eq!(found.as_deref(), expected.map_err(str::to_owned).as_ref().map(|t| *t));
}

#[test]
fn senders_act_as_others_where_they_may() {
    check(&[], Ok("itself"));
    check(&[("impersonate-user", "bob")], Ok("bob [\"system:authenticated\"]  {}"));
    check(
        &[("impersonate-user", "bob"), ("impersonate-group", "devs")],
        Ok("bob [\"devs\", \"system:authenticated\"]  {}"),
    );
    check(
        &[("impersonate-user", "bob"), ("impersonate-group", "system:unauthenticated")],
        Ok("bob [\"system:unauthenticated\"]  {}"),
    );
    check(&[("impersonate-user", "system:anonymous")], Ok("system:anonymous [\"system:unauthenticated\"]  {}"));
    check(
        &[("impersonate-user", "system:serviceaccount:a:robot")],
        Ok(
            "system:serviceaccount:a:robot [\"system:serviceaccounts\", \"system:serviceaccounts:a\", \"system:authenticated\"]  {}",
        ),
    );
    check(
        &[
            ("impersonate-user", "bob"),
            ("impersonate-uid", "7"),
            ("impersonate-extra-acme%2fscope", "x"),
            ("impersonate-extra-acme%2fscope", "y"),
        ],
        Ok("bob [\"system:authenticated\"] 7 {\"acme/scope\": [\"x\", \"y\"]}"),
    );
    check(
        &[("impersonate-user", "no-body")],
        Err(
            "users \"no-body\" is forbidden: User \"ann\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
        ),
    );
    check(
        &[("impersonate-user", "bob"), ("impersonate-group", "no-go")],
        Err(
            "groups \"no-go\" is forbidden: User \"ann\" cannot impersonate resource \"groups\" in API group \"\" at the cluster scope",
        ),
    );
    check(
        &[("impersonate-user", "system:serviceaccount:a:no-bot")],
        Err(
            "serviceaccounts \"no-bot\" is forbidden: User \"ann\" cannot impersonate resource \"serviceaccounts\" in API group \"\" in the namespace \"a\"",
        ),
    );
    check(
        &[("impersonate-user", "bob"), ("impersonate-extra-k", "no-v")],
        Err(
            "userextras.authentication.k8s.io \"no-v\" is forbidden: User \"ann\" cannot impersonate resource \"userextras/k\" in API group \"authentication.k8s.io\" at the cluster scope",
        ),
    );
    check(&[("impersonate-group", "devs")], Err("requested [{Group  devs    }] without impersonating a user"));
    check(
        &[("impersonate-uid", "7")],
        Err("requested [{UID  7  authentication.k8s.io/v1  }] without impersonating a user"),
    );
}
