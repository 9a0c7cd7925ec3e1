use super::*;

fn services() -> Value {
    let column = |name: &str, priority: i64| json!({"name": name, "type": "string", "priority": priority});
    let metadata = json!({"name": "web", "namespace": "default", "labels": {"b": "2", "a": "1"}});
    json!({
        "kind": "Table",
        "columnDefinitions": [{"name": "Name", "type": "string", "format": "name"}, column("Age", 0), column("Selector", 1)],
        "rows": [{"cells": ["web", "5m", "app=web"], "object": {"metadata": metadata}}],
    })
}

fn check(design: &Design, expected: &[&[&str]]) {
    let table = Table::read(&services(), design, 0);
    let rows: Vec<Vec<String>> =
        std::iter::once(table.head).chain(table.rows.into_iter().map(|row| row.cells)).collect();
    assert_eq!(rows, expected, "{design:?}");
}

#[test]
fn columns_are_those_that_are_asked_for() {
    check(&Design::default(), &[&["NAME", "AGE"], &["web", "5m"]]);
    check(&Design { wide: true, ..Design::default() }, &[&["NAME", "AGE", "SELECTOR"], &["web", "5m", "app=web"]]);
    check(
        &Design {
            namespaces: true,
            labels: true,
            label_columns: vec!["x.io/a".into(), "a".into()],
            ..Design::default()
        },
        &[&["NAMESPACE", "NAME", "AGE", "A", "A", "LABELS"], &["default", "web", "5m", "", "1", "a=1,b=2"]],
    );
    check(&Design { prefix: "service/".to_owned(), ..Design::default() }, &[&["NAME", "AGE"], &["service/web", "5m"]]);
}

#[test]
fn objects_without_a_table_have_name_and_age() {
    let list =
        json!({"kind": "FooList", "items": [{"metadata": {"name": "a", "creationTimestamp": "1970-01-01T00:00:00Z"}}]});
    let table = Table::read(&list, &Design::default(), 90);
    assert_eq!(table.rows[0].cells, ["a", "90s"]);
    let one = json!({"kind": "Foo", "metadata": {"name": "b"}});
    assert_eq!(Table::read(&one, &Design::default(), 90).rows[0].cells, ["b", "<unknown>"]);
}

#[test]
fn lines_are_as_kubectl_aligns_them() {
    let rows = [["NAME", "A", "AGE"], ["web-frontend", "", "5m"]].map(|row| row.map(str::to_owned).to_vec());
    let mut widths = Widths::default();
    widths.fit(rows.iter().map(Vec::as_slice));
    let lines: String = rows.iter().map(|row| widths.line(row, |_, cell| cell.to_owned())).collect();
    assert_eq!(lines, "NAME           A     AGE\nweb-frontend         5m\n");
}

#[test]
fn a_cell_is_one_line_a_terminal_does_not_obey() {
    assert_eq!(text(&json!("a\nb")), "a...");
    assert_eq!(text(&json!("\u{1b}[31mred")), "^[[31mred");
    assert_eq!(text(&json!(7)), "7");
    assert_eq!(text(&Value::Null), "");
}

#[test]
fn whatever_a_terminal_would_obey_is_shown_instead() {
    let check = |text: &str, shown: &str| assert_eq!(harmless(text), shown, "{text:?}");
    check("plain, größer\tand\nso on", "plain, größer\tand\nso on");
    check("\u{1b}]0;mine\u{7}", "^[]0;mine\\u{7}");
    check("over\rwritten", "over\\rwritten");
    check("\u{9b}2J", "\\u{9b}2J");
    check("a\u{8}b\u{7f}", "a\\u{8}b\\u{7f}");
    check("^[", "^[");
}

#[test]
fn a_table_has_strong_names_and_no_blanks_at_the_end() {
    let rows = [["NAME", "STATE", "MORE"], ["web\u{1b}[2J", "ready", ""]].map(|row| row.map(str::to_owned).to_vec());
    let told = lines(&rows, Paint::ALWAYS, |column, cell| match column {
        1 => Paint::ALWAYS.tone(Tone::Good, cell),
        _ => cell.to_owned(),
    });
    let head = "\u{1b}[1mNAME\u{1b}[0m       \u{1b}[1mSTATE\u{1b}[0m   \u{1b}[1mMORE\u{1b}[0m";
    assert_eq!(told, format!("{head}\nweb^[[2J   \u{1b}[32mready\u{1b}[0m\n"));
}

#[test]
fn a_table_without_columns_has_those_of_the_one_before() {
    let mut columns = Columns::default();
    columns.complete(&mut services());
    let mut later = services();
    later.unset("columnDefinitions");
    columns.complete(&mut later);
    assert_eq!(later, {
        let mut expected = services();
        let own = expected.unset("columnDefinitions").expect("it has some");
        expected.set("columnDefinitions", own);
        expected
    });
    let mut object = json!({"kind": "Service"});
    columns.complete(&mut object);
    assert_eq!(object, json!({"kind": "Service"}));
}
