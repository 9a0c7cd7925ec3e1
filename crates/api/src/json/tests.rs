use super::*;
use crate::value::json;

#[test]
fn a_repeated_key_takes_the_last_value_and_is_named() {
    let body = br#"{"a":{"b":[{"c":1,"c":2}]},"a":{"b":[{"c":3,"c":4}]}}"#;
    let parsed = parse(body).unwrap();
    assert_eq!(parsed.value, json!({"a": {"b": [{"c": 4}]}}));
    assert_eq!(parsed.duplicates, ["a.b[0].c", "a"]);
}

#[test]
fn malformed_bodies_get_the_words_of_the_reference() {
    let check = |body: &str, message: &str| assert_eq!(parse(body.as_bytes()).unwrap_err(), message, "{body}");
    check("", "unexpected end of JSON input");
    check("{", "unexpected end of JSON input");
    check("hello", "invalid character 'h' looking for beginning of value");
    check("{a:1}", "invalid character 'a' looking for beginning of object key string");
    check(r#"{"a" 1}"#, "invalid character '1' after object key");
    check(r#"{"a":1 "b"}"#, "invalid character '\"' after object key:value pair");
    check(r#"{"a":1}x"#, "invalid character 'x' after top-level value");
    check("[1,2", "unexpected end of JSON input");
    check("[1 2]", "invalid character '2' after array element");
    check("tru", "unexpected end of JSON input");
    check("nulL", "invalid character 'L' in literal null (expecting 'l')");
    check("1.x", "invalid character 'x' after decimal point in numeric literal");
    check(&"[".repeat(100_000), "exceeded max depth");
}
