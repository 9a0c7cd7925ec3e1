//! The last words of a container: what it wrote to the file for them, or the end of its log.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fairlead_api::Look;
use serde_json::Value;

use crate::node::Node;
use crate::shim::launch::Mount;

/// The file in the folder of a run.
const FILE: &str = "termination-log";
/// Where every container could write them. It is in a folder that is made of devices; whoever wants the file names another.
const USUAL: &str = "/dev/termination-log";
/// So many bytes of a message are kept.
const MESSAGE: u64 = 4096;
/// So many of a log.
const LOG: u64 = 2048;
/// So many lines of it.
const LINES: usize = 80;

/// The file for the last words, where a container wants it in a place of its own.
pub(crate) fn mount(node: &Node, pod: &Value, container: &Value, run: u32) -> Option<Mount> {
    let target = container.text_opt("terminationMessagePath").filter(|path| *path != USUAL && path.starts_with('/'))?;
    let name = format!("{}-{run}-{FILE}", container.text("name"));
    let source = node.folder(pod.at("metadata").text("uid")).join("etc").join(name);
    File::create(&source).ok()?;
    fs::set_permissions(&source, fs::Permissions::from_mode(0o666)).ok()?;
    Some(Mount { source, below: None, target: PathBuf::from(target), read_only: false, optional: false })
}

/// What a container wrote there.
pub(crate) fn left(node: &Node, pod: &Value, container: &str, run: u32) -> String {
    let file = node.folder(pod.at("metadata").text("uid")).join("etc").join(format!("{container}-{run}-{FILE}"));
    let mut text = Vec::new();
    let read = File::open(&file).and_then(|file| file.take(MESSAGE).read_to_end(&mut text));
    let _ = fs::remove_file(&file);
    read.map(|_| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
}

/// The end of a log.
pub(crate) fn last(log: &Path) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(2 * LOG)))?;
        let mut text = Vec::new();
        file.take(2 * LOG).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let text = read().unwrap_or_default();
    // The time, the stream and the mark of each line are the log's own.
    let lines: Vec<&str> = text.lines().filter_map(|line| line.splitn(4, ' ').nth(3)).collect();
    let mut said: String = lines[lines.len().saturating_sub(LINES)..].iter().map(|line| format!("{line}\n")).collect();
    while said.len() > usize::try_from(LOG).unwrap_or(usize::MAX) {
        let first = said.find('\n').map_or(said.len(), |end| end + 1);
        said.drain(..first);
    }
    said
}
