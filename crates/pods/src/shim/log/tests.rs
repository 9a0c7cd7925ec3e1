use super::*;

fn check(size: u64, files: u32, chunks: &[&str], expected: &[&[&str]]) {
    let folder =
        std::env::temp_dir().join(format!("fairlead-log-{}-{size}-{files}-{}", std::process::id(), chunks.len()));
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("0.log");
    let mut log = LogFile::open(Log { file: file.clone(), size, files }).expect("a log");
    let now: Timestamp = "2026-01-02T03:04:05.678901234Z".parse().expect("a time");
    let mut lines = Lines::new("stdout");
    chunks.iter().for_each(|chunk| lines.take(&mut log, now, chunk.as_bytes()));
    lines.end(&mut log, now);
    let read = |path: &std::path::Path| -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let prefix = "2026-01-02T03:04:05.678901234Z stdout ";
        text.lines().map(|line| line.strip_prefix(prefix).expect("time and stream").to_owned()).collect()
    };
    let mut found: Vec<Vec<String>> = (1..10).rev().map(|number| read(&numbered(&file, number))).collect();
    found.retain(|lines| !lines.is_empty());
    found.push(read(&file));
    fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(found, expected);
}

#[test]
fn a_line_is_one_however_it_comes() {
    check(1 << 20, 5, &["one\ntw", "o\n", "\nlast\n"], &[&["F one", "F two", "F ", "F last"]]);
}

#[test]
fn a_line_without_an_end_is_a_part() {
    check(1 << 20, 4, &["one\n", "DONE"], &[&["F one", "P DONE"]]);
}

#[test]
fn full_files_are_renamed_and_the_oldest_goes() {
    // Each line has 48 bytes with its end.
    check(100, 2, &["1234567\n1234568\n1234569\n123456a\n123456b\n"], &[&["F 1234569", "F 123456a"], &["F 123456b"]]);
    check(100, 1, &["1234567\n1234568\n1234569\n"], &[&["F 1234569"]]);
}

#[test]
fn long_lines_are_written_in_parts() {
    let long = "x".repeat(LONGEST);
    let (part, rest) = (format!("P {long}"), "F yz".to_owned());
    check(1 << 20, 2, &[&format!("{long}yz\n")], &[&[&part, &rest]]);
    check(1 << 20, 3, &[&format!("{long}\n")], &[&[&format!("F {long}")]]);
}
