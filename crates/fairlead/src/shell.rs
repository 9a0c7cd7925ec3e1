//! For the shell: `fairlead completion` and `fairlead man`, both made from the command line itself.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::Cli;

/// The options of `fairlead completion`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CompletionFlags {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// The options of `fairlead man`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ManFlags {
    /// The command the page is about [default: the program]
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write all pages into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints a completion.
pub(crate) fn complete(flags: &CompletionFlags) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut Cli::whole(), "fairlead", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}

/// Prints a page, or writes all of them.
pub(crate) fn manual(flags: &ManFlags) -> anyhow::Result<()> {
    let mut whole = Cli::whole();
    whole.build();
    let Some(dir) = &flags.dir else {
        let page = find(&whole, &flags.command)?;
        return Ok(std::io::stdout().write_all(&page)?);
    };
    std::fs::create_dir_all(dir).with_context(|| format!("--dir {}", dir.display()))?;
    let mut written = 0;
    write(&whole, "fairlead", dir, &mut written)?;
    Ok(writeln!(std::io::stdout(), "{written} pages in {}", dir.display())?)
}

/// The page of the command these words name.
fn find(whole: &Command, words: &[String]) -> anyhow::Result<Vec<u8>> {
    let (mut command, mut name) = (whole, "fairlead".to_owned());
    for word in words {
        let found = command.find_subcommand(word);
        command = found.ok_or_else(|| anyhow!("{name} has no command {word:?}; `fairlead --help` shows them"))?;
        name = format!("{name}-{word}");
    }
    page(command, &name)
}

/// Writes the pages of a command and of those below it.
fn write(command: &Command, name: &str, dir: &PathBuf, written: &mut usize) -> anyhow::Result<()> {
    let file = dir.join(format!("{name}.1"));
    std::fs::write(&file, page(command, name)?).with_context(|| file.display().to_string())?;
    *written += 1;
    for child in command.get_subcommands().filter(|child| !child.is_hide_set() && child.get_name() != "help") {
        write(child, &format!("{name}-{}", child.get_name()), dir, written)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command.clone().display_name(name.to_owned())).title(name.to_uppercase()).render(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut whole = Cli::whole();
        whole.build();
        let mut written = 0;
        write(&whole, "fairlead", &directory.path().to_owned(), &mut written).expect("writes");
        assert!(written > 20, "{written} pages");
        let text = std::fs::read_to_string(directory.path().join("fairlead-get.1")).expect("a page");
        assert!(text.contains("fairlead get") && text.contains("EXTRA"), "{text}");
        assert!(find(&whole, &["nothing".to_owned()]).is_err());
    }
}
