use super::*;

#[test]
fn warnings_are_what_is_quoted() {
    let check = |header: &str, expected: &[&str]| assert_eq!(texts(header), expected, "{header}");
    check(r#"299 - "v1 Endpoints is deprecated""#, &["v1 Endpoints is deprecated"]);
    check(r#"299 - "a \"b\" \\ c", 299 - "d""#, &["a \"b\" \\ c", "d"]);
    check("299 - text", &[]);
    check(r#"299 - "cut"#, &[]);
}

#[test]
fn a_name_becomes_a_field_selector_of_a_watch() {
    let query =
        Query { name: "web".to_owned(), fields: "a=b".to_owned(), labels: "x in (y)".to_owned(), ..Query::default() };
    assert_eq!(query.selectors(), "labelSelector=x%20in%20%28y%29&fieldSelector=a%3Db%2Cmetadata.name%3Dweb");
    assert_eq!(query.name_path(), "/web");
}
