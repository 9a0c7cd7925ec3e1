use super::{Figure, render, write};

fn figure(value: f64) -> Figure {
    Figure { what: "creates".to_owned(), value, unit: "/s" }
}

#[test]
fn without_a_peer_there_is_no_ratio() {
    let text = render(&[figure(1234.5)], None);
    assert!(text.starts_with("peer absent\n"), "{text}");
    assert!(text.contains("1234") && !text.contains("peer/us"), "{text}");
}

#[test]
fn a_peer_stands_beside_with_its_ratio() {
    let text = render(&[figure(200.0)], Some(&[figure(50.0)]));
    assert!(text.lines().nth(1).is_some_and(|line| line.contains("200") && line.contains("0.25")), "{text}");
}

#[test]
fn a_file_of_figures_has_a_line_with_three_fields_for_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("figures.tsv");
    write(&path, &[figure(0.25), figure(1e6)]).expect("written");
    let text = std::fs::read_to_string(path).expect("read");
    assert_eq!(text, "creates\t0.25\t/s\ncreates\t1000000\t/s\n");
}
