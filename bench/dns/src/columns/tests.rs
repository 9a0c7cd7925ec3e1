use super::*;

fn row(name: &'static str, value: f64) -> Row {
    Row { name, figures: vec![value; FIGURES.len()] }
}

#[test]
fn ratios_are_ours_of_theirs() {
    let text = render("9 Services", &[row("fairlead", 2.0), row("knot", 8.0), row("echo", 0.0)]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["9", "Services", "fairlead", "knot", "echo", "us/knot", "us/echo"]);
    assert_eq!(lines[8], ["memory,", "MiB", "2.00", "8.00", "0.00", "0.25", "-"]);
    assert_eq!(lines.len(), 1 + FIGURES.len());
}

#[test]
fn growth_is_the_last_of_the_first() {
    let text = growth("more", &[row("fairlead", 2.0)], &[row("fairlead", 3.0)]);
    assert!(text.lines().skip(1).all(|line| line.ends_with(" 1.50")), "{text}");
}
