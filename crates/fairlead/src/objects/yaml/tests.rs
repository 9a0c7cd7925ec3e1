use serde_json::json;

use super::*;

fn check(value: &Value, expected: &str) {
    assert_eq!(print(value), expected, "{value}");
}

#[test]
fn keys_are_in_natural_order_and_lists_are_not_indented() {
    let value = json!({"spec": {"ports": [{"port": 80, "name": "http"}, {"port": 443}], "empty": [], "none": {}}, "a10": 1, "a2": null});
    check(
        &value,
        "a2: null\na10: 1\nspec:\n  empty: []\n  none: {}\n  ports:\n  - name: http\n    port: 80\n  - port: 443\n",
    );
    check(&json!([["a", ["b"]], {"c": [1]}]), "- - a\n  - - b\n- c:\n  - 1\n");
}

#[test]
fn texts_are_quoted_where_they_mean_something_else() {
    let cases = [
        ("web", "web"),
        ("", "\"\""),
        ("yes", "\"yes\""),
        ("null", "\"null\""),
        ("1.5", "\"1.5\""),
        (".5", "\".5\""),
        ("1.2.3", "1.2.3"),
        ("10.96.0.1", "10.96.0.1"),
        ("1e3", "\"1e3\""),
        ("1_000", "\"1_000\""),
        ("0x1f", "\"0x1f\""),
        ("0o8", "0o8"),
        ("08", "\"08\""),
        ("-", "'-'"),
        ("-x", "-x"),
        ("12:30", "\"12:30\""),
        ("12:99", "12:99"),
        ("2026-01-02", "\"2026-01-02\""),
        ("2026-13-02", "2026-13-02"),
        ("2026-01-02T15:04:05Z", "\"2026-01-02T15:04:05Z\""),
        ("2026-01-02T15:04:05", "2026-01-02T15:04:05"),
        ("99999999999999999999", "\"99999999999999999999\""),
        ("a: b", "'a: b'"),
        ("a:b", "a:b"),
        ("a #b", "'a #b'"),
        ("it's", "it's"),
        ("'q' \"d\"", "'''q'' \"d\"'"),
        (" x", "' x'"),
        ("tab\there", "\"tab\\there\""),
        ("é ü", "é ü"),
        ("😀", "\"\\U0001F600\""),
        ("fd00::1", "fd00::1"),
        ("::1", "::1"),
        (":", "':'"),
        ("%", "'%'"),
        ("---", "'---'"),
        ("<<", "<<"),
    ];
    for (text, expected) in cases {
        check(&json!({ "k": text }), &format!("k: {expected}\n"));
    }
}

#[test]
fn lines_become_blocks() {
    check(&json!({"k": "a\n  b\n", "l": "x"}), "k: |\n  a\n    b\nl: x\n");
    check(&json!({"k": "a\nb", "l": "x"}), "k: |-\n  a\n  b\nl: x\n");
    check(&json!({"k": "a\n\n", "l": "x"}), "k: |+\n  a\n\nl: x\n");
    check(&json!({"k": "\n", "l": "x"}), "k: |2+\n\nl: x\n");
    check(&json!({"k": "a \nb"}), "k: \"a \\nb\"\n");
}

#[test]
fn long_lines_are_folded_behind_the_eightieth_column() {
    let words = "word ".repeat(20);
    let text = words.trim_end();
    let first = "word ".repeat(16);
    check(&json!({ "k": text }), &format!("k: {}\n  word word word word\n", first.trim_end()));
    let long = "x".repeat(130);
    check(&json!({ &*long: 1 }), &format!("? {long}\n: 1\n"));
}

#[test]
fn numbers_are_as_go_writes_them() {
    check(&json!([1, -2, 1.5, 0.25, 1e21, 1_234_567.5]), "- 1\n- -2\n- 1.5\n- 0.25\n- 1e+21\n- 1.2345675e+06\n");
}
