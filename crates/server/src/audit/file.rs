//! The file the audit log goes to, and the old ones beside it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use fairlead_api::value::Value;
use jiff::Timestamp;

use super::Options;

/// An open log.
pub(super) struct Log {
    options: Options,
    out: Out,
}

enum Out {
    Stdout(io::Stdout),
    File { file: File, size: u64 },
}

impl Log {
    pub(super) fn open(options: Options) -> io::Result<Log> {
        let out = if options.path == Path::new("-") { Out::Stdout(io::stdout()) } else { open(&options.path)? };
        Ok(Log { options, out })
    }

    /// Writes a line; begins a new file first if this one would grow too large.
    pub(super) fn write(&mut self, event: &Value) -> io::Result<()> {
        let line = format!("{event}\n");
        let length = line.len() as u64;
        let max = self.options.max_size;
        if let Out::File { size, .. } = self.out
            && max > 0
            && size > 0
            && size + length > max
        {
            self.rotate()?;
        }
        match &mut self.out {
            Out::Stdout(out) => out.write_all(line.as_bytes()),
            Out::File { file, size } => {
                *size += length;
                file.write_all(line.as_bytes())
            }
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        let path = &self.options.path;
        fs::rename(path, unused(path, Timestamp::now()))?;
        self.out = open(path)?;
        if self.options.max_backup > 0 {
            let mut old = backups(path)?;
            old.sort();
            let surplus = old.len().saturating_sub(self.options.max_backup);
            for path in &old[..surplus] {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<Out> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let size = file.metadata()?.len();
    Ok(Out::File { file, size })
}

/// `audit.log` becomes `audit-2026-11-15T21-44-00.123456.log`: names sort by time.
fn unused(path: &Path, now: Timestamp) -> PathBuf {
    let (stem, ending) = parts(path);
    path.with_file_name(format!("{stem}-{}{ending}", now.strftime("%Y-%m-%dT%H-%M-%S.%9f")))
}

fn parts(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
    let ending = text(path.extension()).map(|ending| format!(".{ending}")).unwrap_or_default();
    (text(path.file_stem()).unwrap_or_default(), ending)
}

/// Old files of a log: nothing else, whatever lies in the directory.
fn backups(path: &Path) -> io::Result<Vec<PathBuf>> {
    let (stem, ending) = parts(path);
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let time = name.strip_prefix(&format!("{stem}-")).and_then(|rest| rest.strip_suffix(&ending));
        let digits = "0000-00-00T00-00-00.000000000";
        let fits = |time: &str| {
            time.len() == digits.len()
                && time.chars().zip(digits.chars()).all(|(c, d)| if d == '0' { c.is_ascii_digit() } else { c == d })
        };
        if time.is_some_and(fits) {
            found.push(dir.join(&name));
        }
    }
    Ok(found)
}
