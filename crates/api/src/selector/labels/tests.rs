use super::LabelSelector;

const LABELS: &[(&str, &str)] = &[("app", "a"), ("tier", ""), ("n", "7"), ("in", "in")];

fn check(text: &str, selected: bool) {
    let selector = LabelSelector::parse(text).expect(text);
    let label = |key: &str| LABELS.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
    assert_eq!(selector.matches(label), selected, "{text}");
}

fn check_error(text: &str, message: &str) {
    assert_eq!(LabelSelector::parse(text).expect_err(text).message, message, "{text}");
}

#[test]
fn requirements_select_by_value_and_presence() {
    for text in ["", "app", "app=a", " app == a ", "app!=b", "app in (a,b)", "app in (b,,a)", "!no", "no!=x", "no!="] {
        check(text, true);
    }
    for text in ["no", "app=b", "app!=a", "app notin (a)", "!app", "app in ()", "app=", "app=a,app=b"] {
        check(text, false);
    }
}

#[test]
fn the_empty_value_is_a_value() {
    for text in ["tier=", "tier in ()", "tier in (,)", "tier in (x,)", "tier,app"] {
        check(text, true);
    }
    check("tier!=", false);
    check("tier notin ()", false);
}

#[test]
fn numbers_compare_and_words_do_not() {
    check("n>6", true);
    check("n<8", true);
    check("n>7", false);
    check("app>1", false);
    check("no<1", false);
}

#[test]
fn operators_may_be_keys_and_values() {
    check("in in (in)", true);
    check("in=in", true);
    check("notin", false);
}

#[test]
fn mistakes_are_told_in_the_reference_words() {
    check_error("app=a,,tier=f", "found ',', expected: identifier after ','");
    check_error("app=a,", "found '', expected: identifier after ','");
    check_error("=a", "found '=', expected: !, identifier, or 'end of string'");
    check_error("app=(a)", "unable to parse requirement: found '(', expected: identifier");
    check_error("!", "unable to parse requirement: found '', expected: identifier");
    check_error("!app=x", "found '=', expected: ',' or 'end of string'");
    check_error("app a", "unable to parse requirement: found 'a', expected: in, notin, =, ==, !=, gt, lt");
    check_error("app in a", "unable to parse requirement: found 'a' expected: '('");
    check_error("app in (a", "unable to parse requirement: found '', expected: ',' or ')'");
    check_error("app in (a,", "unable to parse requirement: found '', expected: ',', or identifier");
    check_error("app in (=", "unable to parse requirement: found '=', expected: ',', ')' or identifier");
    check_error(
        "app>x",
        "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
    );
}

#[test]
fn keys_and_values_follow_the_rules_of_labels() {
    let long = "a".repeat(64);
    check_error(
        &format!("{long}=x"),
        &format!(
            "unable to parse requirement: <nil>: Invalid value: \"{long}\": name part must be no more than 63 bytes"
        ),
    );
    check_error(
        &format!("app={long}"),
        &format!(
            "unable to parse requirement: values[0][app]: Invalid value: \"{long}\": must be no more than 63 bytes"
        ),
    );
}

#[test]
fn the_selector_of_an_object_has_the_text_of_the_reference_server() {
    use crate::value::{Value, json};
    let check = |selector: Value, expected: Result<&str, &str>| {
        let text = LabelSelector::from_object(&selector).map(|selector| selector.to_string());
        assert_eq!(text.as_deref().map_err(String::as_str), expected, "{selector}");
    };
    check(json!({}), Ok(""));
    check(json!({"matchLabels": {"b": "2", "a": "1"}}), Ok("a=1,b=2"));
    check(
        json!({"matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["web", "db"]},
            {"key": "old", "operator": "DoesNotExist"},
            {"key": "app", "operator": "Exists"},
            {"key": "zone", "operator": "NotIn", "values": ["z"]},
        ]}),
        Ok("app,!old,tier in (db,web),zone notin (z)"),
    );
    check(
        json!({"matchExpressions": [{"key": "a", "operator": "Is"}]}),
        Err("\"Is\" is not a valid label selector operator"),
    );
    check(json!({"matchExpressions": [{"key": "a", "operator": "In"}]}), Err("values do not fit the operator In"));
    // An absent selector selects nothing, an empty one everything.
    let selects =
        |selector: &Value, object: &Value| LabelSelector::from_object(selector).expect("a selector").selects(object);
    let object = json!({"metadata": {"labels": {"app": "web"}}});
    assert!(!selects(&Value::Null, &object));
    assert!(selects(&json!({}), &object));
    assert!(selects(&json!({"matchLabels": {"app": "web"}}), &object));
    assert!(!selects(&json!({"matchLabels": {"app": "db"}}), &object));
}
