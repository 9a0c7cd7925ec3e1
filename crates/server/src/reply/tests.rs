//! Lists in all forms: what is streamed is the same as what is made at once.

use fairlead_api::json;
use fairlead_api::kinds::{ENDPOINT_SLICE, SERVICE};
use fairlead_store::Revision;
use http::header::CONTENT_LENGTH;
use std::io::Read;

use super::*;
use crate::serve::HeldBytes;
use crate::table::Include;

fn entries(kind: &'static Kind, count: usize, size: usize) -> Vec<Arc<Entry>> {
    let entry = |number: usize| {
        let name = format!("object-{number}");
        let object = json!({
            "kind": kind.kind,
            "apiVersion": kind.api_version(),
            "metadata": {"name": name, "namespace": "default", "uid": "u", "annotations": {"a\n\"[]": "x".repeat(size)}},
        });
        Arc::new(Entry::new(name.as_str().into(), Revision(number as u64 + 1), &crate::object::encode(&object)))
    };
    (0..count).map(entry).collect()
}

fn list(kind: &'static Kind, count: usize, size: usize) -> List {
    let entries = entries(kind, count, size);
    List { kind, revision: "77".to_owned(), continue_token: "next".to_owned(), remaining: Some(3), entries }
}

fn form(media: Media, shape: Shape) -> Form {
    Form { media, shape, pretty: false, gzip: false }
}

async fn render_list(list: List, form: Form) -> (http::HeaderMap, Option<u64>, Vec<u8>) {
    let reply = Reply { code: 200, payload: Payload::List(list) };
    let answer = render(reply, form, Include::Metadata, 0).expect("a list");
    let held = answer.extensions().get::<HeldBytes>().map(|held| held.0);
    let (head, body) = answer.into_parts();
    let exact = http_body::Body::size_hint(&body).exact();
    let bytes = body.collect().await.expect("a body").to_bytes();
    if let Some(exact) = exact {
        assert_eq!(exact, bytes.len() as u64);
    }
    (head.headers, held, bytes.to_vec())
}

fn objects(kind: &'static Kind, count: usize, size: usize) -> Vec<Value> {
    entries(kind, count, size).iter().map(|entry| crate::object::load(kind, entry).expect("an object")).collect()
}

fn expected(kind: &'static Kind, count: usize, size: usize) -> Value {
    let mut items = objects(kind, count, size);
    for item in &mut items {
        let fields = item.as_object_mut().expect("an object");
        fields.shift_remove("kind");
        fields.shift_remove("apiVersion");
    }
    json!({
        "kind": format!("{}List", kind.kind),
        "apiVersion": kind.api_version(),
        "metadata": {"resourceVersion": "77", "continue": "next", "remainingItemCount": 3},
        "items": items,
    })
}

/// Small, streamed, and streamed with objects that are sent as they are stored.
const SIZES: [(usize, usize); 5] = [(0, 0), (3, 10), (400, 1_000), (5, 100_000), (2_500, 1_000)];

#[tokio::test]
async fn a_streamed_list_is_the_text_of_the_whole() {
    for (count, size) in SIZES {
        let (_, held, text) = render_list(list(&SERVICE, count, size), form(Media::Json, Shape::Object)).await;
        assert_eq!(String::from_utf8(text).expect("text"), expected(&SERVICE, count, size).to_string());
        assert_eq!(held.is_some(), count * size > 64 << 10);
        assert!(held.is_none_or(|held| held < 200 << 10), "{held:?}");
    }
}

#[tokio::test]
async fn an_indented_list_is_the_text_of_the_whole() {
    for (count, size) in SIZES {
        let pretty = Form { pretty: true, ..form(Media::Json, Shape::Object) };
        let (.., text) = render_list(list(&SERVICE, count, size), pretty).await;
        let mut whole = serde_json::to_string_pretty(&expected(&SERVICE, count, size)).expect("text");
        whole.push('\n');
        assert_eq!(String::from_utf8(text).expect("text"), whole);
    }
}

#[tokio::test]
async fn a_compressed_list_is_the_same_list() {
    let gzip = Form { gzip: true, ..form(Media::Json, Shape::Object) };
    for (count, size) in SIZES {
        let (headers, _, bytes) = render_list(list(&SERVICE, count, size), gzip).await;
        let mut text = String::new();
        match headers.get(CONTENT_ENCODING) {
            Some(_) => drop(flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut text).expect("gzip")),
            None => text = String::from_utf8(bytes).expect("text"),
        }
        assert_eq!(headers.contains_key(CONTENT_ENCODING), count * size >= 128 << 10);
        assert_eq!(text, expected(&SERVICE, count, size).to_string());
    }
}

#[tokio::test]
async fn a_list_in_protobuf_has_its_length_before_it() {
    for (count, size) in SIZES {
        for kind in [&SERVICE, &ENDPOINT_SLICE] {
            let (.., bytes) = render_list(list(kind, count, size), form(Media::Protobuf, Shape::Object)).await;
            let raw = proto::write_list(kind.schema, &expected(kind, count, size));
            assert!(bytes == proto::wrap(&kind.api_version(), &format!("{}List", kind.kind), &raw), "{count} {size}");
        }
    }
}

#[tokio::test]
async fn tables_and_metadata_are_streamed_object_by_object() {
    for (count, size) in SIZES {
        for pretty in [false, true] {
            let write = |value: &Value| match pretty {
                true => serde_json::to_string_pretty(value).expect("text") + "\n",
                false => value.to_string() + "\n",
            };
            let paging = |mut value: Value| {
                set_paging(value.map_mut("metadata"), &list(&SERVICE, 0, 0));
                value
            };
            let form = |shape| Form { pretty, ..form(Media::Json, shape) };
            let objects = objects(&SERVICE, count, size);
            let (.., text) = render_list(list(&SERVICE, count, size), form(Shape::Table("v1"))).await;
            let whole = paging(table::table(&SERVICE, "v1", "77", &objects, Include::Metadata, 0));
            assert_eq!(String::from_utf8(text).expect("text"), write(&whole));
            let (.., text) = render_list(list(&SERVICE, count, size), form(Shape::MetadataList("v1"))).await;
            let whole = paging(table::metadata_list(&objects, "v1", "77"));
            assert_eq!(String::from_utf8(text).expect("text"), write(&whole));
        }
    }
}

#[tokio::test]
async fn head_tells_the_length_of_a_streamed_list() {
    let reply = Reply { code: 200, payload: Payload::List(list(&SERVICE, 400, 1_000)) };
    let answer = render(reply, form(Media::Json, Shape::Object), Include::Metadata, 0).expect("a list");
    let length = without_body(answer).headers()[CONTENT_LENGTH].to_str().expect("text").parse::<usize>();
    assert_eq!(length.expect("a number"), expected(&SERVICE, 400, 1_000).to_string().len());
}

#[test]
fn a_large_list_is_not_written_as_yaml() {
    let reply = Reply { code: 200, payload: Payload::List(list(&SERVICE, 100, 100_000)) };
    let refused = render(reply, form(Media::Yaml, Shape::Object), Include::Metadata, 0).map(drop);
    assert_eq!(refused.expect_err("too large").code, 406);
}
