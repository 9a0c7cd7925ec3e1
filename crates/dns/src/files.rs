//! Corefiles on disk: the file, what it imports, and its variables.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::corefile::{self, Outside};
use crate::settings::Settings;

#[cfg(test)]
mod tests;

/// The longest file that is read.
const LONGEST: u64 = 16 << 20;

/// A Corefile, and what goes with it.
#[derive(Debug, Clone)]
pub struct Corefile {
    /// The file.
    pub path: PathBuf,
    /// Variables for `{$NAME}`.
    pub variables: BTreeMap<String, String>,
    /// What the command line adds.
    pub settings: Settings,
}

impl Corefile {
    /// Reads it, and everything it imports.
    pub fn read(&self) -> Result<Settings, Error> {
        let file = self.path.display().to_string();
        let text = read(&self.path).map_err(|error| Error::File { file: file.clone(), error })?;
        let settings = corefile::parse(&file, &text, self).map_err(Error::Corefile)?;
        Ok(Settings { servers: settings.servers, ..self.settings.clone() })
    }
}

impl Outside for Corefile {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn files(&self, pattern: &str, from: &str) -> Result<Vec<(String, String)>, String> {
        let beside = Path::new(from).parent().unwrap_or(Path::new("."));
        let path = beside.join(pattern);
        let Some(last) = path.file_name().and_then(|name| name.to_str()) else { return Err("no file".to_owned()) };
        if !last.contains(['*', '?']) {
            return read(&path).map(|text| vec![(path.display().to_string(), text)]).map_err(|error| error.to_string());
        }
        let directory = path.parent().unwrap_or(Path::new("."));
        if directory.to_string_lossy().contains(['*', '?']) {
            return Err("only the name of the file may be a pattern".to_owned());
        }
        // A directory that is not there has no files that match.
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let matches =
            |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| fits(last, name));
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(matches).filter(|path| path.is_file()).collect();
        paths.sort();
        let text = |path: PathBuf| match read(&path) {
            Ok(text) => Ok((path.display().to_string(), text)),
            Err(error) => Err(format!("{}: {error}", path.display())),
        };
        paths.into_iter().map(text).collect()
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    if fs::metadata(path)?.len() > LONGEST {
        return Err(std::io::Error::other("it is too long"));
    }
    fs::read_to_string(path)
}

/// Whether a name fits a pattern: `*` is any text, `?` any character.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut retry) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            // The last star takes one more.
            _ => match retry {
                Some((after, from)) => {
                    retry = Some((after, from + 1));
                    (p, n) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}
