//! Do the documents name only commands and flags the program has, and does the program have no flag they hide?

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use fairlead_testkit::{Server, project};

/// Flags that documents name and that belong to other programs.
const FOREIGN: &[&str] = &[
    "--always-splice",
    "--example",
    "--fairlead",
    "--field-selector",
    "--full",
    "--nocapture",
    "--overwrite",
    "--release",
    "--tcp",
    "--test",
];
/// Commands with flags of their own.
const COMMANDS: &[&str] = &[
    "server",
    "join",
    "token",
    "control",
    "proxy",
    "dns",
    "explain",
    "ui",
    "status",
    "doctor",
    "top",
    "trace",
    "env",
    "history",
    "diff",
    "register",
    "run",
    "ps",
    "logs",
    "exec",
    "stop",
    "cleanup",
    "balancer",
    "get",
    "describe",
    "apply",
    "delete",
    "watch",
    "events",
    "man",
    "lb ls",
    "lb describe",
    "lb drain",
    "image load",
    "image ls",
    "image rm",
];

#[test]
fn every_flag_in_the_documents_exists() {
    let known = all_flags();
    assert!(known.contains("--data-dir"), "{known:?}");
    let mut wrong = Vec::new();
    for (file, text) in documents() {
        let named =
            flags(&ours(&text)).into_iter().filter(|flag| !known.contains(flag) && !FOREIGN.contains(&flag.as_str()));
        wrong.extend(named.map(|flag| format!("{file}: the program has no {flag}")));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_flag_is_in_the_documents() {
    let text: String = documents().into_iter().map(|(_, text)| text).collect();
    let named = flags(&text);
    let hidden: Vec<String> = all_flags().difference(&named).cloned().collect();
    assert_eq!(hidden, Vec::<String>::new(), "docs/api.md and docs/controllers.md have tables of flags");
}

#[test]
fn every_command_in_the_readme_exists() {
    let readme = fs::read_to_string(project().join("README.md")).expect("README.md");
    let known = help(&["--help"]);
    let mut seen = 0;
    for line in readme.lines() {
        let words: Vec<&str> = line.trim_start_matches(['$', ' ']).split_whitespace().collect();
        let command = match words.as_slice() {
            ["fairlead", command, ..] => *command,
            _ => continue,
        };
        seen += 1;
        let there = known.split([' ', ',', '\n']).any(|word| word == command);
        assert!(there || command.starts_with('-'), "README.md: the program has no command {command}");
    }
    assert!(seen > 0, "README.md shows no command of the program");
}

#[test]
fn a_start_prints_the_line_the_readme_shows() {
    let server = Server::start(env!("CARGO_BIN_EXE_fairlead"), &[]);
    let readme = fs::read_to_string(project().join("README.md")).expect("README.md");
    for line in ["Fairlead is ready at https://127.0.0.1:", "export KUBECONFIG="] {
        assert!(server.announcement().contains(line), "{}", server.announcement());
        assert!(readme.contains(line), "README.md: {line}");
    }
    let exported = format!("export KUBECONFIG={}", server.kubeconfig().display());
    assert!(server.announcement().contains(&exported), "{}", server.announcement());
    assert!(server.kubeconfig().exists());
}

fn all_flags() -> BTreeSet<String> {
    let words = |command: &str| command.split(' ').chain(["--help"]).map(str::to_owned).collect::<Vec<_>>();
    COMMANDS.iter().flat_map(|command| flags(&help(&words(command)))).collect()
}

/// README.md, ARCHITECTURE.md, CONTRIBUTING.md and all of docs/ but docs/conformance.md, which lists commands of kubectl.
fn documents() -> Vec<(String, String)> {
    let top = project();
    let mut files: Vec<_> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].iter().map(|file| top.join(file)).collect();
    files.extend(fs::read_dir(top.join("docs")).expect("docs").flatten().map(|entry| entry.path()));
    files.retain(|file| !file.ends_with("docs/conformance.md"));
    let read = |file: &std::path::PathBuf| (file.display().to_string(), fs::read_to_string(file).expect("a document"));
    files.iter().map(read).collect()
}

fn help(arguments: &[impl AsRef<std::ffi::OsStr> + std::fmt::Debug]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fairlead")).args(arguments).output().expect("the program runs");
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A document without what is typed for other programs, and without what its readers do not see.
fn ours(text: &str) -> String {
    let (mut console, mut comment, mut kept) = (false, false, String::new());
    for line in text.lines() {
        comment |= line.starts_with("<!--");
        let typed = line.trim_start_matches("$ ").trim_start_matches("sudo ");
        if !comment && (!console || typed.starts_with("fairlead ") && !typed.contains(" -- ")) {
            kept += &format!("{line}\n");
        }
        comment &= !line.ends_with("-->");
        console = line == "```console" || console && line != "```";
    }
    kept
}

/// The long flags in a text.
fn flags(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("--") {
        let before = text[..at].chars().next_back();
        let rest: String = text[at + 2..].chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        let rest = rest.trim_end_matches('-');
        let starts = before.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '-');
        if starts && rest.len() > 1 && !["help", "version"].contains(&rest) {
            found.insert(format!("--{rest}"));
        }
    }
    found
}
