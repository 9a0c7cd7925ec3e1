use super::*;

#[test]
fn json_is_sorted_indented_by_four_and_safe_in_html() {
    let value = json!({"b": "<a & b>\u{2028}", "a": [], "c": [1, {}], "d": "é\n"});
    let expected = "{\n    \"a\": [],\n    \"b\": \"\\u003ca \\u0026 b\\u003e\\u2028\",\n    \"c\": [\n        1,\n        {}\n    ],\n    \"d\": \"é\\n\"\n}\n";
    assert_eq!(object(&value, Output::Json), expected);
}

#[test]
fn who_set_a_field_is_left_out() {
    let mut value = json!({"metadata": {"name": "x", "managedFields": [1]}});
    without_managers(&mut value);
    assert_eq!(value, json!({"metadata": {"name": "x"}}));
}
