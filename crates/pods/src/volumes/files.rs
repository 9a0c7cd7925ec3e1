//! Files that change all at once: they are links into a folder that a link names, and that link is replaced.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Component, Path};

/// The link that names the present files.
const PRESENT: &str = "..data";

/// What a file holds, and who may read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

/// Makes a folder hold these files and no others. Nothing happens if it does.
pub(crate) fn write(folder: &Path, files: &BTreeMap<String, Content>, group: Option<u32>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for path in files.keys() {
        let fine =
            Path::new(path).components().all(|part| matches!(part, Component::Normal(_))) && !path.starts_with("..");
        if !fine || path.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{path:?} is no path in a volume")));
        }
    }
    if same(folder, files) {
        return Ok(());
    }
    let name = (0..).map(|number| format!("..{number}")).find(|name| !folder.join(name).exists());
    let name = name.expect("there are more numbers than folders");
    fill(&folder.join(&name), files, group)?;
    let next = folder.join("..data_tmp");
    let _ = fs::remove_file(&next);
    symlink(&name, &next)?;
    let old = fs::read_link(folder.join(PRESENT)).ok();
    fs::rename(&next, folder.join(PRESENT))?;
    links(folder, files)?;
    if let Some(old) = old {
        fs::remove_dir_all(folder.join(old))?;
    }
    Ok(())
}

fn same(folder: &Path, files: &BTreeMap<String, Content>) -> bool {
    let present = folder.join(PRESENT);
    let equal =
        |(path, content): (&String, &Content)| fs::read(present.join(path)).is_ok_and(|old| old == content.bytes);
    present.exists() && files.iter().all(equal) && count(&present) == files.len()
}

fn count(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
}

fn fill(folder: &Path, files: &BTreeMap<String, Content>, group: Option<u32>) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (path, content) in files {
        let file = folder.join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&file, &content.bytes)?;
        let mut mode = content.mode;
        if let Some(group) = group {
            chown(&file, None, Some(group))?;
            // Whatever the volume says, fsGroup may read it (pkg/volume/volume_linux.go, roMask).
            mode |= 0o440;
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// A link for the first part of each path; those of files that are gone go.
fn links(folder: &Path, files: &BTreeMap<String, Content>) -> io::Result<()> {
    let first = |path: &str| path.split('/').next().unwrap_or(path).to_owned();
    let wanted: Vec<String> = files.keys().map(|path| first(path)).collect();
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with("..") && !wanted.contains(&name) {
            fs::remove_file(entry.path())?;
        }
    }
    for name in wanted {
        let link = folder.join(&name);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(PRESENT).join(&name), link)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
