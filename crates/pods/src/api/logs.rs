//! `/containerLogs/NAMESPACE/POD/CONTAINER`: what a container wrote, from its log files, and what it writes while one waits.

use std::io::SeekFrom;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::Response;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::{Body, plain};
use crate::host::Logs;
pub(super) use line::Options;
use line::Printer;

mod line;
mod tail;

/// How much is read at a time.
const CHUNK: usize = 64 << 10;
/// So many pieces wait for the client.
const QUEUE: usize = 4;
/// How often a followed file is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The log as an answer that is made while it is sent.
pub(super) fn answer(logs: Logs, options: Options, place: OwnedSemaphorePermit) -> Response<Body> {
    let (out, queue) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let _place = place;
        let teller = Teller { out: &out, printer: Printer::new(&options), carry: BytesMut::new() };
        tokio::select! {
            () = tell(&logs, &options, teller) => {}
            () = out.closed() => {}
        }
    });
    let frames = stream::unfold(queue, |mut queue: mpsc::Receiver<Bytes>| async {
        let bytes = queue.recv().await?;
        Some((Ok(Frame::data(bytes)), queue))
    });
    plain(http::StatusCode::OK, "").map(|_| StreamBody::new(frames).boxed_unsync())
}

/// Tells it all. A file that cannot be read is left out: it may just have been rotated away.
async fn tell(logs: &Logs, options: &Options, mut teller: Teller<'_>) {
    let (first, mut offset) = match options.tail {
        Some(lines) => tail::find(&logs.files, lines).await,
        None => (0, 0),
    };
    let Some((last, older)) = logs.files.split_last() else { return };
    for path in older.iter().skip(first) {
        if let Some(mut file) = open(path, std::mem::take(&mut offset)).await
            && !teller.rest_of(&mut file).await
        {
            return;
        }
    }
    let Some(mut file) = open(last, offset).await else { return };
    loop {
        // Asked before the last look, so that nothing written before it is missed.
        let ended = logs.ended.is_cancelled() || !options.follow;
        if !teller.rest_of(&mut file).await {
            return;
        }
        if let Some(newer) = renewed(&file, last).await {
            if !teller.rest_of(&mut file).await {
                return;
            }
            file = newer;
            continue;
        }
        if ended {
            return teller.end().await;
        }
        tokio::select! {
            () = logs.ended.cancelled() => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

async fn open(path: &Path, offset: u64) -> Option<File> {
    let mut file = File::open(path).await.ok()?;
    file.seek(SeekFrom::Start(offset)).await.ok()?;
    Some(file)
}

/// The file that has taken the name of the open one, if another has.
async fn renewed(file: &File, path: &Path) -> Option<File> {
    let (open, named) = (file.metadata().await.ok()?, tokio::fs::metadata(path).await.ok()?);
    if (open.dev(), open.ino()) == (named.dev(), named.ino()) {
        return None;
    }
    File::open(path).await.ok()
}

/// Sends lines to the client.
struct Teller<'a> {
    out: &'a mpsc::Sender<Bytes>,
    printer: Printer<'a>,
    /// A line whose end was not read yet.
    carry: BytesMut,
}

impl Teller<'_> {
    /// Tells what is left of a file. False: nothing more is wanted.
    async fn rest_of(&mut self, file: &mut File) -> bool {
        loop {
            self.carry.reserve(CHUNK);
            match file.read_buf(&mut self.carry).await {
                Ok(1..) => {}
                _ => return true,
            }
            let whole = match self.carry.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => self.carry.split_to(end + 1),
                None if self.carry.len() < line::MAX => continue,
                None => self.carry.split(),
            };
            if !self.send(&whole).await {
                return false;
            }
        }
    }

    /// The last line, if it has no end.
    async fn end(&mut self) {
        let rest = self.carry.split();
        self.send(&rest).await;
    }

    async fn send(&mut self, lines: &[u8]) -> bool {
        let mut text = Vec::with_capacity(lines.len());
        let more = lines.split_inclusive(|byte| *byte == b'\n').all(|line| self.printer.print(line, &mut text));
        (text.is_empty() || self.out.send(text.into()).await.is_ok()) && more
    }
}

#[cfg(test)]
mod tests;
