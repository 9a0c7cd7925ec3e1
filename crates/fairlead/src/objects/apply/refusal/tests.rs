use super::unknown_field;

#[test]
fn the_name_of_an_unknown_field_is_found_in_the_servers_words() {
    let check =
        |message: &str, expected: Option<&str>| assert_eq!(unknown_field(message).as_deref(), expected, "{message}");
    check(
        "failed to create typed patch object (default/web; /v1, Kind=Service): .spec.foo: field not declared in schema",
        Some("spec.foo"),
    );
    check("strict decoding error: unknown field \"spec.ports[0].prot\"", Some("spec.ports[0].prot"));
    check("something else", None);
}
