//! Values keep the order of their fields, and find each of them however many there are.

use super::*;

#[test]
fn fields_keep_their_order_and_a_repeated_one_its_place() {
    let mut value: Value = serde_json::from_str(r#"{"b":1,"a":[null,true,-1.5,"x"],"b":2}"#).unwrap();
    assert_eq!(value.to_string(), r#"{"b":2,"a":[null,true,-1.5,"x"]}"#);
    let map = value.as_object_mut().unwrap();
    map.shift_insert(1, "c", Value::Null);
    assert_eq!(map.keys().map(Key::as_str).collect::<Vec<_>>(), ["b", "c", "a"]);
    map.shift_remove("b");
    map.sort_keys();
    assert_eq!(map.keys().map(Key::as_str).collect::<Vec<_>>(), ["a", "c"]);
}

#[test]
fn every_field_is_found_whether_there_are_few_or_many() {
    for count in [0, 1, 31, 32, 33, 34, 100] {
        let mut map: Map = (0..count).map(|n| (n.to_string(), Value::from(n))).collect();
        assert_eq!(map.insert("7", 7.into()).is_some(), count > 7, "{count}");
        map.shift_remove("3");
        map.shift_insert(0, "first", true.into());
        map.entry("last").or_insert(1);
        map.retain(|name, _| name != "5");
        for (name, value) in &map {
            assert_eq!(map.get(name), Some(value), "{count}: {name}");
        }
        for gone in ["3", "5", "none"] {
            assert!(!map.contains_key(gone), "{count}: {gone}");
        }
    }
}

#[test]
fn objects_are_equal_in_any_order_of_their_fields() {
    let check = |a: Value, b: Value, same: bool| assert_eq!(a == b, same, "{a} {b}");
    check(json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), true);
    check(json!({"a": 1, "b": 2}), json!({"b": 1, "a": 2}), false);
    check(json!({"a": 1}), json!({"a": 1, "b": 2}), false);
    check(json!({"a": null}), json!({"b": null}), false);
    check(json!([1, 2]), json!([2, 1]), false);
}

#[test]
fn a_pointer_reaches_into_objects_and_lists() {
    let value = json!({"a/b": [{"~": 1}], "": 2});
    let check = |pointer: &str, found: Option<Value>| assert_eq!(value.pointer(pointer), found.as_ref(), "{pointer}");
    check("", Some(value.clone()));
    check("/a~1b/0/~0", Some(json!(1)));
    check("/", Some(json!(2)));
    check("/a~1b/00", None);
    check("/a~1b/1", None);
    check("a", None);
}
