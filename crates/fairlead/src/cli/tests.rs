use super::*;

/// Every command and subcommand that is shown, with its path.
fn commands() -> Vec<(Vec<String>, clap::Command)> {
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), Cli::command())];
    while let Some((path, command)) = open.pop() {
        for child in command.get_subcommands().filter(|child| !child.is_hide_set() && child.get_name() != "help") {
            let mut path = path.clone();
            path.push(child.get_name().to_owned());
            open.push((path.clone(), child.clone()));
            found.push((path, child.clone()));
        }
    }
    found
}

/// The lines of a help that show how the program is called.
fn examples(command: &clap::Command) -> Vec<String> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.lines().filter(|line| line.starts_with(' ')).map(str::trim_start);
    let lines = lines.map(|line| line.trim_start_matches("$ ").trim_start_matches("sudo "));
    lines.filter(|line| line.starts_with("fairlead ")).map(str::to_owned).collect()
}

/// What the shell would pass on: what stands behind two blanks, a pipe or a remark is not for the program.
fn words(line: &str) -> Vec<String> {
    let ends = ["  ", " | ", " > ", " && ", " #"].iter().filter_map(|mark| line.find(mark));
    let command = &line[..ends.min().unwrap_or(line.len())];
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in command.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            (' ', None) => words.push(std::mem::take(&mut word)),
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    words
}

#[test]
fn every_command_has_examples_and_every_example_is_one() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for (path, command) in commands() {
        let lines = examples(&command);
        if lines.is_empty() {
            wrong.push(format!("fairlead {}: its help has no example", path.join(" ")));
        }
        for line in lines {
            seen += 1;
            let words = words(&line);
            if !words.get(1..).is_some_and(|rest| rest.starts_with(&path)) {
                wrong.push(format!("fairlead {}: an example of something else: {line}", path.join(" ")));
            }
            if let Err(error) = Cli::try_parse_from(&words) {
                wrong.push(format!("{line}: {error}"));
            }
        }
    }
    assert!(seen > 40 && wrong.is_empty(), "{seen} examples\n{}", wrong.join("\n"));
}

#[test]
fn the_overview_fits_a_screen_and_names_every_command() {
    let help = Cli::whole().render_help().to_string();
    assert!(help.lines().count() <= 40, "{} lines\n{help}", help.lines().count());
    let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
    for (path, _) in commands().iter().filter(|(path, _)| path.len() == 1) {
        assert!(overview::names().any(|name| name == path[0]), "the overview lacks {path:?}");
        let shown = help.split([' ', ',', '\n']).any(|word| word == path[0]);
        assert!(shown, "{path:?} is not in\n{help}");
    }
}

#[test]
fn the_command_line_is_consistent() {
    Cli::whole().debug_assert();
}
