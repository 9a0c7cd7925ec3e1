use super::*;

fn row(name: &str, ip: &str, age: &str) -> Row {
    let cells = [name, ip, age].map(str::to_owned).to_vec();
    Row { key: ("default".to_owned(), name.to_owned()), created: "x".to_owned(), revision: String::new(), cells }
}

fn board() -> (Board, Instant) {
    let (mut board, now) = (Board::default(), Instant::now());
    board.head(["NAME", "IP", "AGE"].map(str::to_owned).to_vec());
    let first = board.replace(vec![row("a", "10.0.0.1", "5s"), row("b", "10.0.0.2", "5s")], now);
    assert!(first.iter().all(|(mark, _)| *mark == Mark::Same), "{first:?}");
    (board, now)
}

#[test]
fn changes_are_marked_and_marks_fade() {
    let (mut board, now) = board();
    assert_eq!(board.put(row("a", "10.0.0.1", "6s"), now), None, "only older");
    assert_eq!(board.put(row("a", "10.0.0.9", "6s"), now).map(|(mark, _)| mark), Some(Mark::Changed));
    assert_eq!(board.put(row("c", "10.0.0.3", "0s"), now).map(|(mark, _)| mark), Some(Mark::New));
    assert_eq!(board.remove(row("b", "10.0.0.2", "6s"), now).map(|(mark, _)| mark), Some(Mark::Gone));
    let text = board.render(80, 24);
    assert_eq!(
        text,
        "  NAME   IP         AGE\n~ a      10.0.0.9   6s\n- b      10.0.0.2   6s\n+ c      10.0.0.3   0s\n"
    );
    board.age(now + FRESH, |_| "9s".to_owned());
    assert_eq!(board.render(80, 24), "  NAME   IP         AGE\n  a      10.0.0.9   9s\n  c      10.0.0.3   9s\n");
}

#[test]
fn what_was_missed_is_marked_when_it_is_read_anew() {
    let (mut board, now) = board();
    let changes = board.replace(vec![row("a", "10.0.0.1", "7s"), row("d", "10.0.0.4", "0s")], now);
    let marks: Vec<(Mark, &str)> = changes.iter().map(|(mark, cells)| (*mark, cells[0].as_str())).collect();
    assert_eq!(marks, [(Mark::Gone, "b"), (Mark::New, "d")]);
}

#[test]
fn a_table_fits_its_terminal() {
    let (mut board, _) = board();
    let text = board.render(20, 4);
    assert!(text.lines().all(|line| line.chars().count() < 20) && text.ends_with("  and 1 more\n"), "{text}");
}

#[test]
fn without_a_terminal_there_is_a_line_a_change() {
    let (mut board, now) = board();
    let change = board.put(row("c", "10.0.0.3", "0s"), now).expect("new");
    assert_eq!(board.lines(&[change]), "  NAME   IP         AGE\n+ c      10.0.0.3   0s\n");
}
