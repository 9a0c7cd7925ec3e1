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
