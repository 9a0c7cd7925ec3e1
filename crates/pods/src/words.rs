//! The last words of a container: what it wrote to the file for them, or the end of its log.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fairlead_api::Look;
use serde_json::Value;

use crate::node::Node;
use crate::shim::launch::Mount;
use crate::volumes;

/// End of the name of the file.
const FILE: &str = "termination-log";
/// Maximum length of a message, in bytes (pkg/kubelet/container/runtime.go,
/// MaxContainerTerminationMessageLength).
const MESSAGE: u64 = 4096;
/// Maximum length of a message that is taken from the log, in bytes.
const MESSAGE_OF_LOG: usize = 2048;
/// Maximum number of lines of a message that is taken from the log.
const LINES: usize = 80;
/// Bytes read from the end of a log: a line of 16 KiB, the longest the shim writes, and the line
/// before it, whose beginning may be missing.
const END_OF_LOG: u64 = 36 << 10;

/// The container's own file for its termination message, at the place the container asks for.
pub(crate) fn mount(node: &Node, pod: &Value, container: &Value, run: u32) -> Option<Mount> {
    let target = container.text_opt("terminationMessagePath").filter(|path| path.starts_with('/'))?;
    let source = file(node, pod, container.text("name"), run);
    File::create(&source).ok()?;
    fs::set_permissions(&source, fs::Permissions::from_mode(0o666)).ok()?;
    Some(Mount { source, below: None, target: PathBuf::from(target), read_only: false, optional: false })
}

/// The file on the host for the termination message of a run of a container.
fn file(node: &Node, pod: &Value, container: &str, run: u32) -> PathBuf {
    let folder = volumes::last_words(&node.folder(pod.at("metadata").text("uid")));
    folder.join(format!("{container}-{run}-{FILE}"))
}

/// What a container wrote there.
pub(crate) fn left(node: &Node, pod: &Value, container: &str, run: u32) -> String {
    let file = file(node, pod, container, run);
    let mut text = Vec::new();
    let read = File::open(&file).and_then(|file| file.take(MESSAGE).read_to_end(&mut text));
    let _ = fs::remove_file(&file);
    read.map(|_| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
}

/// Returns the end of a log as a termination message.
pub(crate) fn last(log: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let skipped = file.metadata()?.len().saturating_sub(END_OF_LOG);
        file.seek(SeekFrom::Start(skipped))?;
        let mut bytes = Vec::new();
        file.take(END_OF_LOG).read_to_end(&mut bytes)?;
        if skipped > 0 {
            // The first line begins somewhere before.
            let first = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
            bytes.drain(..first);
        }
        Ok(bytes)
    };
    message(&String::from_utf8_lossy(&read().unwrap_or_default()))
}

/// Returns the text of the last lines of a log: `TIME STREAM TAG TEXT` is `TEXT` and a line end, or
/// without the line end if the tag is `P`, for a part of a line.
fn message(log: &str) -> String {
    let lines: Vec<String> = log
        .lines()
        .filter_map(|line| {
            let mut words = line.splitn(4, ' ').skip(2);
            let tag = words.next()?;
            let text = words.next()?;
            Some(if tag == "P" { text.to_owned() } else { format!("{text}\n") })
        })
        .collect();
    let mut said = lines[lines.len().saturating_sub(LINES)..].concat();
    let surplus = said.len().saturating_sub(MESSAGE_OF_LOG);
    let first = (surplus..=said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(said.len());
    said.drain(..first);
    said
}

#[cfg(test)]
mod tests;
