//! Requests by dice: good objects spoilt in one place or several, in every format; patches, queries, paths and headers that no
//! program would make.

use fairlead_api::{Kind, kinds, proto};
use fastrand::Rng;
use serde_json::{Value, json};

use super::{Request, objects};

const MEDIA: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json; charset=utf-8",
    "application/cbor",
    "text/plain",
    "",
    "/",
    ";;;",
];
const PATCHES: std::ops::Range<usize> = 3..7;
const KEPT: &[&str] = &[
    "/api/v1/namespaces/default/services/kept",
    "/api/v1/namespaces/default/services/kept/status",
    "/api/v1/namespaces/default/configmaps/kept",
    "/api/v1/namespaces/default/pods/kept",
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kept",
];

/// The next request.
pub(super) fn request(random: &mut Rng) -> Request {
    let mut request = match random.u8(..10) {
        0..=3 => create(random),
        4 => replace(random),
        5..=7 => patch(random),
        8 => read(random),
        _ => delete(random),
    };
    if random.u8(..8) == 0 {
        request.path = spoil_path(random, &request.path);
    }
    if random.u8(..8) == 0 {
        request.headers = headers(random);
    }
    request
}

fn create(random: &mut Rng) -> Request {
    let (path, mut object) = choose(random, objects::all());
    spoil_several(random, &mut object);
    let (media, bytes) = encoded(random, path, &object);
    Request::new("POST", with_query(random, path, WRITE_QUERIES), media, bytes)
}

fn replace(random: &mut Rng) -> Request {
    let at = random.usize(..objects::kept().len());
    let (path, mut object) = objects::kept().swap_remove(at);
    spoil_several(random, &mut object);
    let (media, bytes) = encoded(random, path, &object);
    Request::new("PUT", with_query(random, &format!("{path}/kept"), WRITE_QUERIES), media, bytes)
}

fn patch(random: &mut Rng) -> Request {
    let path = word(random, KEPT);
    let media = MEDIA[random.usize(PATCHES)];
    let body = match media {
        "application/json-patch+json" => Value::Array((0..random.usize(..6)).map(|_| operation(random)).collect()),
        _ => {
            let (_, mut object) = choose(random, objects::kept());
            spoil_several(random, &mut object);
            direct(random, &mut object);
            object
        }
    };
    let mut text = body.to_string().into_bytes();
    if random.u8(..10) == 0 {
        garble(random, &mut text);
    }
    Request::new("PATCH", with_query(random, path, WRITE_QUERIES), media, text)
}

fn read(random: &mut Rng) -> Request {
    let paths = [
        "/api/v1/services",
        "/api/v1/pods",
        "/api/v1/namespaces/default/services/kept",
        "/apis/discovery.k8s.io/v1/endpointslices",
        "/api/v1/events",
        "/apis",
        "/openapi/v3/api/v1",
        "/version",
        "/readyz",
    ];
    let path = word(random, &paths);
    Request::new("GET", with_query(random, path, READ_QUERIES), "application/json", "")
}

/// Always with a condition that does not hold or an object that is not there: what is kept stays.
fn delete(random: &mut Rng) -> Request {
    let mut body = json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "propagationPolicy": "Background",
        "preconditions": {"uid": "no-such-uid"},
    });
    spoil(random, &mut body);
    let path = "/api/v1/namespaces/default/services/absent";
    let (media, bytes) = (word(random, &MEDIA[..2]), body.to_string());
    Request::new("DELETE", with_query(random, path, WRITE_QUERIES), media, bytes)
}

/// An object as JSON, as YAML (of which JSON is one form) or as protobuf, now and then garbled.
fn encoded(random: &mut Rng, path: &str, object: &Value) -> (&'static str, Vec<u8>) {
    let (media, mut bytes) = match (random.u8(..6), kind_of(path)) {
        (0, Some(kind)) => {
            let raw = proto::write(kind.schema, &object.clone().into());
            ("application/vnd.kubernetes.protobuf", proto::wrap(&kind.api_version(), kind.kind, &raw))
        }
        (1, _) => ("application/yaml", yaml(random, object)),
        (2, _) => (word(random, MEDIA), object.to_string().into_bytes()),
        _ => ("application/json", object.to_string().into_bytes()),
    };
    if random.u8(..4) == 0 {
        garble(random, &mut bytes);
    }
    (media, bytes)
}

fn kind_of(path: &str) -> Option<&'static Kind> {
    let resource = path.rsplit('/').next()?;
    kinds::KINDS.iter().copied().find(|kind| kind.resource == resource)
}

/// The first level in YAML's own manner.
fn yaml(random: &mut Rng, object: &Value) -> Vec<u8> {
    let fields = object.as_object().into_iter().flatten();
    let mut text: String = fields.map(|(key, value)| format!("{key}: {value}\n")).collect();
    match random.u8(..6) {
        0 => text.push_str("extra: &anchor [1, *anchor]\n"),
        1 => text.push_str("? [complex, key]\n: value\n"),
        2 => text.insert_str(0, "%YAML 9.9\n---\n"),
        3 => text.push_str("---\nsecond: document\n"),
        4 => text.push_str("tagged: !!binary \"%%%\"\n<<: [1]\n"),
        _ => {}
    }
    text.into_bytes()
}

/// Changes some bytes.
fn garble(random: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..random.usize(1..4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.usize(..bytes.len());
        match random.u8(..5) {
            0 => bytes.truncate(at),
            1 => bytes[at] = random.u8(..),
            2 => bytes.insert(at, random.u8(..)),
            3 => drop(bytes.remove(at)),
            _ => {
                let end = bytes.len().min(at + random.usize(..64));
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
}

fn spoil_several(random: &mut Rng, object: &mut Value) {
    for _ in 0..random.usize(..4) {
        spoil(random, object);
    }
}

/// Puts something else into a random place.
fn spoil(random: &mut Rng, value: &mut Value) {
    let descend = random.u8(..6) != 0;
    match value {
        Value::Object(fields) if descend && !fields.is_empty() => {
            let at = random.usize(..fields.len());
            if let Some(field) = fields.values_mut().nth(at) {
                spoil(random, field);
            }
        }
        Value::Array(items) if descend && !items.is_empty() => {
            let at = random.usize(..items.len());
            spoil(random, &mut items[at]);
        }
        Value::Object(fields) if random.bool() => {
            let name = word(random, &["name", "unknown", "", "$patch", "f:x", "a.b/c", "\u{0}"]);
            fields.insert((*name).to_owned(), odd(random));
        }
        Value::Array(items) if random.bool() => {
            let copy = items.first().cloned().unwrap_or(Value::Null);
            items.extend(std::iter::repeat_n(copy, random.usize(..40)));
        }
        other => *other = odd(random),
    }
}

/// A value that rarely fits.
fn odd(random: &mut Rng) -> Value {
    match random.u8(..16) {
        0 => Value::Null,
        1 => json!(random.bool()),
        2 => json!(random.i64(..)),
        3 => json!(random.u64(..)),
        4 => json!(random.f64() * 1e300),
        5 => json!(-1),
        6 => json!([]),
        7 => json!({}),
        8 => (0..random.usize(..300)).fold(json!("core"), |inner, _| json!([inner])),
        9 => (0..random.usize(..300)).fold(json!(1), |inner, _| json!({ "a": inner })),
        10 => json!("x".repeat(random.usize(..70_000))),
        11 => json!((0..random.usize(..20)).map(|_| random.char(..)).collect::<String>()),
        12 => json!(["a", 1, null, {}, []]),
        13 => json!(random.i32(..)),
        14 => json!(word(random, WORDS)),
        _ => json!({"a": "b", "c": {"d": []}}),
    }
}

/// Words that mean something somewhere.
const WORDS: &[&str] = &[
    "None",
    "ClusterIP",
    "ExternalName",
    "NodePort",
    "Local",
    "IPv6",
    "10.0.0.1",
    "::1",
    "::ffff:1.2.3.4",
    "0x10",
    "1e3",
    "100m",
    "-5Gi",
    "999999999999999999999E",
    "..",
    "../..",
    "kube-system",
    "default",
    "a/b/c",
    "UPPER",
    "ünï",
    "\u{202e}",
    "2026-13-45T99:99:99Z",
    "0",
    "-0",
    "replace",
    "merge",
    "delete",
    "true",
    "*",
];

fn operation(random: &mut Rng) -> Value {
    let ops = ["add", "remove", "replace", "move", "copy", "test", "nonsense", ""];
    let paths = [
        "",
        "/",
        "/metadata",
        "/metadata/labels/a~1b",
        "/metadata/labels/~2",
        "/spec/ports/0",
        "/spec/ports/-",
        "/spec/ports/-1",
        "/spec/ports/99999999999999999999",
        "/spec/ports/00",
        "/spec",
        "/spec/clusterIP",
        "/status/loadBalancer/ingress/-",
        "/kind",
        "/metadata/resourceVersion",
        "/metadata/managedFields",
        "spec",
        "//",
        "/metadata/annotations",
    ];
    let mut operation = json!({"op": word(random, &ops), "path": word(random, &paths)});
    if random.bool() {
        operation["value"] = odd(random);
    }
    if random.bool() {
        operation["from"] = json!(word(random, &paths));
    }
    if random.u8(..6) == 0 {
        spoil(random, &mut operation);
    }
    operation
}

/// Strategic directives, in places where they make sense and where they do not.
fn direct(random: &mut Rng, object: &mut Value) {
    let directives =
        ["$patch", "$setElementOrder/ports", "$deleteFromPrimitiveList/finalizers", "$retainKeys", "$setElementOrder/"];
    let places = ["/spec", "/metadata", "", "/spec/ports/0", "/spec/containers/0"];
    for _ in 0..random.usize(..3) {
        let value = if random.bool() { json!(word(random, WORDS)) } else { odd(random) };
        let place = object.pointer_mut(word(random, &places)).and_then(Value::as_object_mut);
        if let Some(fields) = place {
            fields.insert(word(random, &directives).to_owned(), value);
        }
    }
}

const WRITE_QUERIES: &[&str] = &[
    "fieldManager=m",
    "fieldManager=m&force=true",
    "fieldManager=%00",
    "fieldValidation=Strict",
    "fieldValidation=Ignore",
    "fieldValidation=%ff",
    "dryRun=All",
    "dryRun=All&dryRun=All",
    "dryRun=",
    "pretty=true",
    "gracePeriodSeconds=-1",
    "gracePeriodSeconds=x",
    "propagationPolicy=Sideways",
    "orphanDependents=perhaps",
    "timeout=1s",
    "%=%&&&==",
];

const READ_QUERIES: &[&str] = &[
    "limit=1",
    "limit=-9223372036854775808",
    "limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiXHUwMDAwIn0",
    "continue=%",
    "resourceVersion=0",
    "resourceVersion=-1",
    "resourceVersion=1&resourceVersionMatch=Exact",
    "resourceVersion=18446744073709551616",
    "resourceVersionMatch=Whatever&resourceVersion=1",
    "labelSelector=a%2Cb%2C%21c%2Cd+in+(e%2Cf)%2Cg+notin+()%2Ch%3E1%2Ci%3C2",
    "labelSelector=%2C%2C%2C",
    "labelSelector=x+in+(a%2C%2Cb)",
    "labelSelector=%28%29%28%29",
    "fieldSelector=metadata.name%3Dkept%2Cmetadata.namespace%21%3Dx",
    "fieldSelector=%5C%5C%3D%5C",
    "fieldSelector=spec.clusterIP%3DNone%2Cspec.type%3D",
    "includeObject=Everything",
    "pretty=maybe",
    "watch=1&timeoutSeconds=-1&resourceVersion=abc",
    "watch=1&timeoutSeconds=-5&resourceVersion=1",
    "watch=1&sendInitialEvents=true",
    "timeoutSeconds=x",
    "verbose&exclude=%00",
];

fn with_query(random: &mut Rng, path: &str, queries: &[&str]) -> String {
    match random.u8(..3) {
        0 => path.to_owned(),
        1 => format!("{path}?{}", word(random, queries)),
        _ => format!("{path}?{}&{}", word(random, queries), word(random, queries)),
    }
}

/// Parts of a path replaced by what does not belong there.
fn spoil_path(random: &mut Rng, path: &str) -> String {
    let odd = [
        "", ".", "..", "%2f", "%00", "%", "%zz", "%ff", "-", "UPPER", "kept", "status", "proxy", "token", "v9", ";x=y",
        "a:b",
    ];
    let mut parts: Vec<&str> = path.split('/').collect();
    let at = random.usize(1..parts.len().max(2));
    match random.u8(..3) {
        0 if at < parts.len() => parts[at] = word(random, &odd),
        1 => parts.insert(at.min(parts.len()), word(random, &odd)),
        _ => drop(parts.remove(at.min(parts.len() - 1))),
    }
    let spoilt = parts.join("/");
    if spoilt.starts_with('/') { spoilt } else { format!("/{spoilt}") }
}

fn headers(random: &mut Rng) -> String {
    let some = [
        "Accept: application/json;as=Table;v=v9;g=meta.k8s.io\r\n",
        "Accept: */*;q=x, , application/yaml;q=0.1\r\n",
        "Accept: application/vnd.kubernetes.protobuf\r\n",
        "Accept: application/yaml\r\n",
        "Accept: ;;;,,,\r\n",
        "Accept: \u{fc}\r\n",
        "Accept-Encoding: gzip;q=0, br, *\r\n",
        "Content-Encoding: gzip\r\n",
        "If-None-Match: *\r\n",
        "Range: bytes=5-1\r\n",
        "User-Agent: \u{1}\r\n",
        "User-Agent: \r\n",
        "X-Remote-User: admin\r\n",
        "Impersonate-Group: x\r\n",
        "Audit-ID: \u{fc}\r\n",
    ];
    // What no header may hold is refused before it is a request.
    word(random, &some).replace('\u{1}', "\t")
}

fn choose<T>(random: &mut Rng, mut from: Vec<T>) -> T {
    from.swap_remove(random.usize(..from.len()))
}

fn word<'a>(random: &mut Rng, from: &[&'a str]) -> &'a str {
    from[random.usize(..from.len())]
}
