//! Tables of tokens: good, bad, forged, too old, for others.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fairlead_api::Kind;
use fairlead_api::value::json;
use futures_util::future::BoxFuture;

use super::*;
use crate::auth::{Anonymous, Authenticator};

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Objects by resource, namespace and name.
#[derive(Default, Clone)]
struct World(HashMap<(&'static str, String, String), Value>);

impl World {
    fn with(mut self, kind: &'static Kind, object: Value) -> World {
        let meta = object.at("metadata");
        let key = (kind.resource, meta.text("namespace").to_owned(), meta.text("name").to_owned());
        self.0.insert(key, object);
        self
    }
}

impl Objects for World {
    fn find<'a>(
        &'a self,
        kind: &'static Kind,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>, Failure>> {
        let found = self.0.get(&(kind.resource, namespace.to_owned(), name.to_owned())).cloned();
        Box::pin(async move { Ok(found) })
    }
}

fn world() -> World {
    World::default()
        .with(&kinds::SERVICE_ACCOUNT, json!({"metadata": {"namespace": "a", "name": "robot", "uid": "u1"}}))
        .with(
            &kinds::POD,
            json!({"metadata": {"namespace": "a", "name": "p", "uid": "u2"}, "spec": {"serviceAccountName": "robot", "nodeName": "n"}}),
        )
        .with(&kinds::POD, json!({"metadata": {"namespace": "a", "name": "q", "uid": "u3"}, "spec": {}}))
        .with(&kinds::SECRET, json!({"metadata": {"namespace": "a", "name": "s", "uid": "u4"}}))
        .with(&kinds::NODE, json!({"metadata": {"name": "n", "uid": "u5"}}))
}

fn key() -> SigningKey {
    let pem = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    SigningKey::from_pem(&pem).expect("a key we made")
}

fn tokens() -> Tokens {
    Tokens::new(vec![ISSUER.to_owned()], key(), vec![])
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

const NOW: i64 = 1_800_000_000;

fn claims() -> Value {
    json!({
        "aud": [ISSUER], "exp": NOW + 3600, "iat": NOW, "nbf": NOW, "iss": ISSUER, "jti": "1", "sub": "system:serviceaccount:a:robot",
        "kubernetes.io": {"namespace": "a", "serviceaccount": {"name": "robot", "uid": "u1"}},
    })
}

async fn identify(tokens: &Tokens, token: &str, world: &World, now: i64) -> Result<String, String> {
    let found = tokens.identify(token, None, world, at(now)).await;
    found.map(|(user, _)| user.name).map_err(|rejection| rejection.to_string())
}

#[tokio::test]
async fn a_token_names_its_account() {
    let (tokens, world) = (tokens(), world());
    let answer = tokens.answer(&world, ("a", "robot"), &json!({"spec": {}}), at(NOW), "id").await.expect("a token");
    let (user, audiences) = tokens
        .identify(answer["status"]["token"].as_str().expect("text"), None, &world, at(NOW + 1))
        .await
        .expect("good");
    assert_eq!(user.name, "system:serviceaccount:a:robot");
    assert_eq!((user.uid.as_str(), audiences), ("u1", vec![ISSUER.to_owned()]));
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:a"]);
    assert_eq!(user.extra["authentication.kubernetes.io/credential-id"], ["JTI=id"]);
    assert_eq!(answer["spec"]["expirationSeconds"], 3600);
    assert_eq!(answer["status"]["expirationTimestamp"], "2027-01-15T09:00:00Z");
    assert_eq!(answer["metadata"]["uid"], "u1");
}

#[tokio::test]
async fn claims_that_do_not_hold_are_refused() {
    let (tokens, world) = (tokens(), world());
    type Change = fn(&mut Value);
    let gone = "service account token has been invalidated";
    let table: &[(&str, Change, i64, Result<(), &str>)] = &[
        ("as it is", |_| {}, NOW, Ok(())),
        ("at its end, clocks differ", |_| {}, NOW + 3660, Ok(())),
        ("too old", |_| {}, NOW + 3661, Err("service account token has expired")),
        ("too new", |_| {}, NOW - 61, Err("service account token is not valid yet")),
        ("without an end", |c| drop(c.unset("exp")), NOW, Err("service account token has expired")),
        ("of another issuer", |c| c.set("iss", "https://evil"), NOW, Err("invalid bearer token")),
        (
            "for another audience",
            |c| c.set("aud", json!(["vault"])),
            NOW,
            Err(
                r#"token audiences ["vault"] is invalid for the target audiences ["https://kubernetes.default.svc.cluster.local"]"#,
            ),
        ),
        ("for us among others", |c| c.set("aud", json!(["vault", ISSUER])), NOW, Ok(())),
        ("for us alone, as text", |c| c.set("aud", ISSUER), NOW, Ok(())),
        (
            "of an account that was made anew",
            |c| c["kubernetes.io"]["serviceaccount"].set("uid", "old"),
            NOW,
            Err("service account UID (u1) does not match claim (old)"),
        ),
        (
            "of an account that is gone",
            |c| c["kubernetes.io"]["serviceaccount"].set("name", "gone"),
            NOW,
            Err("serviceaccounts \"gone\" not found"),
        ),
        ("of a pod", |c| c["kubernetes.io"].set("pod", json!({"name": "p", "uid": "u2"})), NOW, Ok(())),
        ("of a pod that is gone", |c| c["kubernetes.io"].set("pod", json!({"name": "x", "uid": "u2"})), NOW, Err(gone)),
        (
            "of a pod of another life",
            |c| c["kubernetes.io"].set("pod", json!({"name": "p", "uid": "old"})),
            NOW,
            Err("pod UID (u2) does not match claim (old)"),
        ),
        ("of a secret", |c| c["kubernetes.io"].set("secret", json!({"name": "s", "uid": "u4"})), NOW, Ok(())),
        ("of a secret that is gone", |c| c["kubernetes.io"].set("secret", json!({"name": "x"})), NOW, Err(gone)),
        ("of a node that is gone", |c| c["kubernetes.io"].set("node", json!({"name": "x"})), NOW, Err(gone)),
        ("without an account", |c| drop(c.unset("kubernetes.io")), NOW, Err("serviceaccounts \"\" not found")),
    ];
    for (what, change, now, expected) in table {
        let mut claims = claims();
        change(&mut claims);
        let token = jws::sign(&tokens.signing, &claims).expect("signed");
        let found = identify(&tokens, &token, &world, *now).await;
        assert_eq!(
            found,
            expected.map(|()| "system:serviceaccount:a:robot".to_owned()).map_err(str::to_owned),
            "{what}"
        );
    }
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let (tokens, world) = (tokens(), world());
    let good = jws::sign(&tokens.signing, &claims()).expect("signed");
    let pieces: Vec<&str> = good.split('.').collect();
    let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = |alg: &str| text(&json!({"alg": alg, "kid": tokens.signing.public.id}));
    let hmac = |message: &str| {
        // The public key as the secret of an HMAC: what a checker that believes the header would accept.
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, tokens.keys[0].jwk().to_string().as_bytes());
        URL_SAFE_NO_PAD.encode(ring::hmac::sign(&key, message.as_bytes()))
    };
    let confused = format!("{}.{}", header("HS256"), pieces[1]);
    let mut other = claims();
    other["kubernetes.io"]["serviceaccount"]["name"] = "admin".into();
    let stranger = jws::sign(&key(), &claims()).expect("signed");
    let critical = text(&json!({"alg": "ES256", "crit": ["x"]}));
    let table = [
        ("no signature", format!("{}.{}.", header("none"), pieces[1])),
        ("no signature, none in capitals", format!("{}.{}.", header("None"), pieces[1])),
        ("algorithm of another kind", format!("{confused}.{}", hmac(&confused))),
        ("another algorithm, right signature", format!("{}.{}.{}", header("RS256"), pieces[1], pieces[2])),
        ("other claims, right signature", format!("{}.{}.{}", pieces[0], text(&other), pieces[2])),
        ("signed by a stranger", stranger),
        ("unknown extension", format!("{critical}.{}.{}", pieces[1], pieces[2])),
        ("empty signature", format!("{}.{}.", pieces[0], pieces[1])),
        ("cut short", format!("{}.{}", pieces[0], pieces[1])),
        ("one piece too many", format!("{good}.x")),
        ("padding", format!("{good}=")),
        ("nothing", String::new()),
        ("dots", "..".to_owned()),
        ("text", "not a token".to_owned()),
    ];
    for (what, token) in table {
        assert_eq!(identify(&tokens, &token, &world, NOW).await, Err("invalid bearer token".to_owned()), "{what}");
    }
    assert!(identify(&tokens, &good, &world, NOW).await.is_ok());
}

#[tokio::test]
async fn a_remembered_token_ends_with_its_account() {
    let (tokens, world) = (tokens(), world());
    let token = jws::sign(&tokens.signing, &claims()).expect("signed");
    assert!(identify(&tokens, &token, &world, NOW).await.is_ok());
    assert!(identify(&tokens, &token, &World::default(), NOW).await.is_err());
    assert!(identify(&tokens, &token, &world, NOW + 7200).await.is_err());
}

#[tokio::test]
async fn what_is_remembered_is_bounded() {
    let tokens = tokens();
    for id in 0..REMEMBERED + 10 {
        let mut checked = tokens.checked.lock().expect("a lock");
        if checked.len() < REMEMBERED {
            let mut name = [0; 32];
            name[..8].copy_from_slice(&(id as u64).to_be_bytes());
            checked.insert(name, Arc::new(Value::Null));
        }
    }
    let token = jws::sign(&tokens.signing, &claims()).expect("signed");
    assert!(tokens.claims(&token).is_some());
    assert_eq!(tokens.checked.lock().expect("a lock").len(), 1);
}

#[tokio::test]
async fn a_token_request_is_checked() {
    let (tokens, world) = (tokens(), world());
    let bound = |kind: &str, name: &str, uid: &str| json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}});
    let short = "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: ";
    let table = [
        (json!({"spec": {"expirationSeconds": 600}}), Ok(())),
        (json!({"spec": {"expirationSeconds": 599}}), Err((422, format!("{short}599: may not specify a duration less than 10 minutes")))),
        (
            json!({"spec": {"expirationSeconds": 1i64 << 33}}),
            Err((422, format!("{short}8589934592: may not specify a duration larger than 2^32 seconds"))),
        ),
        (
            json!({"metadata": {"name": "other"}}),
            Err((422, "TokenRequest.authentication.k8s.io \"robot\" is invalid: metadata.name: Invalid value: \"other\": must match the service account name if specified".to_owned())),
        ),
        (json!({"spec": bound("Pod", "p", "")}), Ok(())),
        (json!({"spec": bound("Pod", "p", "u2")}), Ok(())),
        (json!({"spec": bound("Secret", "s", "")}), Ok(())),
        (json!({"spec": bound("Node", "n", "")}), Ok(())),
        (json!({"spec": bound("Pod", "x", "")}), Err((404, "pods \"x\" not found".to_owned()))),
        (
            json!({"spec": bound("Pod", "q", "")}),
            Err((400, "cannot bind token for serviceaccount \"robot\" to pod running with different serviceaccount name.".to_owned())),
        ),
        (json!({"spec": bound("Service", "s", "")}), Err((400, "cannot bind token to object of type /v1, Kind=Service".to_owned()))),
    ];
    for (request, expected) in table {
        let found = tokens.answer(&world, ("a", "robot"), &request, at(NOW), "id").await;
        let found = found.map(drop).map_err(|failure| (failure.code, failure.message));
        assert_eq!(found, expected, "{request}");
    }
    let conflict =
        tokens.answer(&world, ("a", "robot"), &json!({"spec": bound("Pod", "p", "old")}), at(NOW), "id").await;
    assert_eq!(conflict.expect_err("another pod").code, 409);
    let missing = tokens.answer(&world, ("a", "gone"), &json!({}), at(NOW), "id").await.expect_err("no account");
    assert_eq!(missing.message, "serviceaccounts \"gone\" not found");
}

#[tokio::test]
async fn a_pods_token_names_pod_and_node() {
    let (tokens, world) = (tokens(), world());
    let request = json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}});
    let answer = tokens.answer(&world, ("a", "robot"), &request, at(NOW), "id").await.expect("a token");
    let token = answer["status"]["token"].as_str().expect("text");
    let (user, _) = tokens.identify(token, None, &world, at(NOW)).await.expect("good");
    for (key, value) in [("pod-name", "p"), ("pod-uid", "u2"), ("node-name", "n"), ("node-uid", "u5")] {
        assert_eq!(user.extra[&format!("authentication.kubernetes.io/{key}")], [value]);
    }
    let leaving = world.with(
        &kinds::POD,
        json!({"metadata": {"namespace": "a", "name": "p", "uid": "u2", "deletionTimestamp": "2027-01-15T07:00:00Z"}}),
    );
    assert_eq!(
        identify(&tokens, token, &leaving, NOW).await,
        Err("service account token has been invalidated".to_owned())
    );
}

#[tokio::test]
async fn a_review_says_whose_token_it_is() {
    let tokens = tokens();
    let token = jws::sign(&tokens.signing, &claims()).expect("signed");
    let authenticator =
        Authenticator { accounts: Some(tokens), anonymous: Anonymous::Everywhere, ..Authenticator::default() };
    let review = |spec: Value| {
        let authenticator = &authenticator;
        async move { authenticator.review(&spec, &world(), at(NOW)).await }
    };
    let good = review(json!({"token": token})).await.expect("an answer");
    assert_eq!((&good["authenticated"], &good["audiences"]), (&json!(true), &json!([ISSUER])));
    assert_eq!(
        good["user"]["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"])
    );
    let bad = review(json!({"token": "x"})).await.expect("an answer");
    assert_eq!(bad, json!({"user": {}, "error": "invalid bearer token"}));
    let other = review(json!({"token": token, "audiences": ["vault"]})).await.expect("an answer");
    assert_eq!(
        other["error"],
        format!("token audiences [\"{ISSUER}\"] is invalid for the target audiences [\"vault\"]")
    );
    assert_eq!(review(json!({})).await.expect_err("no token").code, 400);
}

/// A 2048-bit key as existing clusters have it.
const RSA: &str = include_str!("tests/rsa.pem");

#[tokio::test]
async fn keys_of_existing_clusters_work() {
    let key = SigningKey::from_pem(RSA).expect("an RSA key");
    assert_eq!(key.public.algorithm.name(), "RS256");
    let token = jws::sign(&key, &claims()).expect("signed");
    let public = VerifyingKey::all_from_pem(RSA).expect("its public half");
    assert_eq!(public[0].jwk()["e"], "AQAB");
    let tokens = Tokens::new(vec![ISSUER.to_owned()], self::key(), public);
    assert!(identify(&tokens, &token, &world(), NOW).await.is_ok());
    assert_eq!(tokens.jwks()["keys"].as_array().map(Vec::len), Some(2));
}
