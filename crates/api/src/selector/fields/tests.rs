use crate::value::json;

use super::FieldSelector;
use crate::kinds::{ENDPOINTS, EVENT, EVENTS_EVENT, SECRET};

fn check(text: &str, selected: bool) {
    let object = json!({"metadata": {"name": "s=1", "namespace": "ns"}, "type": "Opaque"});
    let selector = FieldSelector::parse(text, &SECRET).expect(text);
    assert_eq!(selector.selects(&object, &SECRET), selected, "{text}");
}

fn check_error(text: &str, kind: &'static crate::Kind, message: &str) {
    assert_eq!(FieldSelector::parse(text, kind).expect_err(text).message, message, "{text}");
}

#[test]
fn terms_select_by_value() {
    for text in ["", ",", r"metadata.name=s\=1", r"metadata.name==s\=1,type=Opaque", "type!=x", "metadata.namespace=ns"]
    {
        check(text, true);
    }
    for text in ["metadata.name=s", "type!=Opaque", "type=", "metadata.name=a,metadata.name=b"] {
        check(text, false);
    }
}

#[test]
fn the_name_asked_for_is_known() {
    let name = |text| FieldSelector::parse(text, &ENDPOINTS).expect(text).name().map(str::to_owned);
    assert_eq!(name("metadata.name=e").as_deref(), Some("e"));
    assert_eq!(name("metadata.name!=e"), None);
}

#[test]
fn mistakes_are_told_in_the_reference_words() {
    check_error("metadata.name", &SECRET, "invalid selector: 'metadata.name'; can't understand 'metadata.name'");
    check_error("type=a=b", &SECRET, "invalid field selector: unescaped character in value: 61");
    check_error(r"type=\x", &SECRET, r"invalid field selector: invalid escape sequence: \x");
    check_error(r"type=a\", &SECRET, r"invalid field selector: invalid escape sequence: \");
    check_error("spec.bogus=1", &SECRET, "field label not supported: spec.bogus");
    check_error(
        "subsets=x",
        &ENDPOINTS,
        "\"subsets\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
    );
}

#[test]
fn each_group_names_the_fields_of_events_its_own_way() {
    assert!(FieldSelector::parse("involvedObject.name=p,source=c", &EVENT).is_ok());
    assert!(FieldSelector::parse("regarding.name=p,reportingController=c", &EVENTS_EVENT).is_ok());
    check_error("regarding.name=p", &EVENT, "field label not supported: regarding.name");
    check_error("involvedObject.name=p", &EVENTS_EVENT, "field label not supported: involvedObject.name");
}
