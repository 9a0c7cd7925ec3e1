//! Bad requests somebody has thought of, with the code they get; and the few faults that kube-apiserver takes upon itself.

use serde_json::Value;

use super::Request;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const KEPT: &str = "/api/v1/namespaces/default/services/kept";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Whether kube-apiserver takes the fault for this bad request upon itself, too (`SURPRISES` of the conformance vectors).
pub(super) fn is_known_fault(request: &Request, status: &Value) -> bool {
    let message = status["message"].as_str().unwrap_or_default();
    // Plain errors have a message and no reason.
    let is_plain = status["reason"].as_str().unwrap_or_default().is_empty();
    let is_patch = request.media == STRATEGIC_PATCH || request.media == APPLY;
    let plain = [
        "resourceVersion should not be set on objects to be created",
        "duplicate nodePort",
        "strconv.ParseUint",
        "invalid resource version",
    ];
    // The Service to be reached has no endpoints.
    let told = ["HealthCheck NodePort", "Too large resource version", "no endpoints available for service"];
    is_plain && (is_patch || plain.iter().any(|known| message.contains(known)))
        || told.iter().any(|known| message.contains(known))
}

/// Each is sent alone and must not change anything.
pub(super) fn cases() -> Vec<(u16, Request)> {
    let mut cases = bodies();
    cases.extend(patches());
    cases.extend(queries());
    cases.extend(addresses());
    cases
}

fn bodies() -> Vec<(u16, Request)> {
    let post = |code, media: &str, body: Vec<u8>| (code, Request::new("POST", SERVICES, media, body));
    let deep = |open: &str, close: &str, depth: usize| [open.repeat(depth), close.repeat(depth)].concat().into_bytes();
    let note = |value: &str| {
        format!(r#"{{"metadata":{{"name":"x","annotations":{{"a":{value}}}}},"spec":{{"ports":[{{"port":1}}]}}}}"#)
    };
    vec![
        post(400, JSON, b"".to_vec()),
        post(400, JSON, b"{".to_vec()),
        post(400, JSON, b"[]".to_vec()),
        post(400, JSON, b"\"text\"".to_vec()),
        post(400, JSON, b"{} {}".to_vec()),
        post(400, JSON, b"{\"metadata\":{\"name\":\"\xff\xfe\"}".to_vec()),
        post(400, JSON, deep("[", "]", 200_000)),
        post(400, JSON, deep("{\"a\":", "}", 200_000)),
        post(400, JSON, note(&String::from_utf8(deep("[", "]", 50_000)).expect("ASCII")).into_bytes()),
        post(400, JSON, br#"{"metadata":{"name":7}}"#.to_vec()),
        post(400, JSON, br#"{"metadata":{"name":"x"},"spec":{"ports":{"port":1}}}"#.to_vec()),
        post(400, JSON, br#"{"metadata":{"name":"x"},"spec":{"ports":[{"port":1e400}]}}"#.to_vec()),
        post(400, JSON, br#"{"metadata":{"name":"x"},"spec":{"ports":[{"port":99999999999999999999}]}}"#.to_vec()),
        post(422, JSON, br#"{"metadata":{"name":"x"},"spec":{"ports":[{"port":-1}]}}"#.to_vec()),
        post(422, JSON, b"{}".to_vec()),
        post(422, JSON, note(&format!("\"{}\"", "x".repeat(300_000))).into_bytes()),
        post(413, JSON, note(&format!("\"{}\"", "x".repeat(3 << 20))).into_bytes()),
        post(413, JSON, vec![b' '; 5 << 20]),
        post(400, JSON, br#"{"apiVersion":"v1","kind":"Pod"}"#.to_vec()),
        post(400, JSON, br#"{"apiVersion":"no/such","kind":"Thing"}"#.to_vec()),
        post(415, "text/plain", b"{}".to_vec()),
        post(415, "application/json/x", b"{}".to_vec()),
        post(415, "application/jso\u{6e}p", b"{}".to_vec()),
        post(400, YAML, b"a: [".to_vec()),
        post(400, YAML, b"\t\t- : :".to_vec()),
        post(400, YAML, b"\x00\x01\x02".to_vec()),
        post(400, YAML, deep("[", "]", 100_000)),
        post(400, YAML, laughs()),
        post(400, PROTOBUF, b"k8s\0".to_vec().into_iter().chain([0xff; 40]).collect()),
        post(400, PROTOBUF, b"{}".to_vec()),
        post(400, PROTOBUF, b"k8s".to_vec()),
    ]
}

/// Few bytes that stand for many.
fn laughs() -> Vec<u8> {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for n in 1..12 {
        let previous = format!("*a{}", n - 1);
        text += &format!("a{n}: &a{n} [{}]\n", vec![previous; 10].join(","));
    }
    text.into_bytes()
}

fn patches() -> Vec<(u16, Request)> {
    let patch = |code, media: &str, body: String| {
        let path = if media == APPLY { format!("{KEPT}?fieldManager=m") } else { KEPT.to_owned() };
        (code, Request::new("PATCH", path, media, body))
    };
    let text = |code, media: &str, body: &str| patch(code, media, body.to_owned());
    let many = vec![r#"{"op":"test","path":"/kind","value":"Service"}"#; 10_001].join(",");
    let copies: Vec<String> = (0..40)
        .map(|n| format!(r#"{{"op":"copy","from":"/metadata/annotations","path":"/metadata/annotations/a{n}"}}"#))
        .collect();
    vec![
        text(400, JSON_PATCH, "{"),
        text(400, JSON_PATCH, "{}"),
        text(413, JSON_PATCH, &format!("[{many}]")),
        text(422, JSON_PATCH, &format!("[{}]", copies.join(","))),
        text(422, JSON_PATCH, r#"[{"op":"remove","path":"/no/such"}]"#),
        text(422, JSON_PATCH, r#"[{"op":"test","path":"/kind","value":"Pod"}]"#),
        text(422, JSON_PATCH, r#"[{"op":"add","path":"/spec/ports/18446744073709551616","value":{}}]"#),
        text(400, MERGE_PATCH, "[]"),
        text(400, MERGE_PATCH, "{"),
        text(422, MERGE_PATCH, r#"{"spec":{"ports":7}}"#),
        text(422, MERGE_PATCH, r#"{"spec":{"clusterIP":"10.0.255.254"}}"#),
        text(400, STRATEGIC_PATCH, "{"),
        text(500, STRATEGIC_PATCH, r#"{"spec":{"$patch":"no such"}}"#),
        text(400, APPLY, "{"),
        text(400, APPLY, "a: ["),
        (415, Request::new("PATCH", KEPT, JSON, "{}")),
        (415, Request::new("PATCH", KEPT, "text/plain", "{}")),
        (422, Request::new("PATCH", KEPT, APPLY, r#"{"apiVersion":"v1","kind":"Service"}"#)),
    ]
}

fn queries() -> Vec<(u16, Request)> {
    let get = |code, query: &str| (code, Request::new("GET", format!("{SERVICES}?{query}"), JSON, ""));
    let post = |code, query: &str| {
        let body = r#"{"metadata":{"name":"x"},"spec":{"ports":[{"port":1}]}}"#;
        (code, Request::new("POST", format!("{SERVICES}?{query}"), JSON, body))
    };
    let long = format!("labelSelector=a+in+({})", vec!["!"; 500].join(","));
    vec![
        get(400, "labelSelector=%21%21%21"),
        get(400, "labelSelector=a+in+("),
        get(400, "labelSelector=a%3D%3D%3Db"),
        get(400, &long),
        get(400, "labelSelector=%ff%fe"),
        get(400, "fieldSelector=no.such%3Dfield"),
        get(400, "fieldSelector=metadata.name"),
        get(400, "limit=abc"),
        get(400, "limit=99999999999999999999"),
        get(400, "continue=%00%01"),
        get(400, "continue=bm90LWEtdG9rZW4"),
        get(400, "resourceVersion=abc"),
        get(422, "resourceVersionMatch=Exact"),
        get(422, "sendInitialEvents=true"),
        post(422, "dryRun=Some"),
        post(422, "fieldValidation=Maybe"),
        post(422, &format!("fieldManager={}", "m".repeat(129))),
    ]
}

fn addresses() -> Vec<(u16, Request)> {
    let get = |code, path: &str| (code, Request::new("GET", path, JSON, ""));
    let with = |code, headers: &str| {
        let mut request = Request::new("GET", KEPT, JSON, "");
        request.headers = headers.to_owned();
        (code, request)
    };
    vec![
        get(404, "/api/v1/namespaces/default/services/no-such"),
        get(404, "/api/v1/namespaces/default/nosuch"),
        get(404, "/api/v2/services"),
        get(404, "/apis/no.such.group/v1/things"),
        get(404, "/api/v1/namespaces/default/services/a/b/c/d"),
        get(404, &format!("/api/v1/namespaces/{}/services/x", "n".repeat(5_000))),
        get(404, "/api/v1/namespaces/default/services/%2e%2e%2f%2e%2e"),
        get(404, "/api/v1/namespaces/default/services/%00"),
        get(404, "/api/v1/namespaces/default/services/%ff%fe"),
        (405, Request::new("POST", KEPT, JSON, "{}")),
        (405, Request::new("PUT", SERVICES, JSON, "{}")),
        (405, Request::new("BREW", SERVICES, JSON, "{}")),
        with(406, "Accept: text/html\r\n"),
        with(406, "Accept: application/json;as=Chair;v=v1;g=meta.k8s.io\r\n"),
    ]
}
