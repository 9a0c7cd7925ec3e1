//! `/fairlead/backup`: a copy of the store, taken while the server goes on, for those who may read everything.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::{Failure, json};
use futures_util::stream;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Method, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::io::AsyncReadExt;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::auth::rbac::{Attributes, Target};
use crate::reply::Body;
use crate::{Inner, not_allowed};

/// Where a copy is asked for.
pub const PATH: &str = "/fairlead/backup";

/// What one must be allowed besides the path: a role made for paths alone gives away no Secrets.
pub(crate) const EVERYTHING: Attributes<'static> = Attributes {
    verb: "list",
    target: Target::Resource { group: "*", resource: "*", subresource: "", namespace: "", name: "" },
};

/// Writes a consistent copy of the store into a file that is not there yet.
pub type Copy = Arc<dyn Fn(&Path) -> Result<(), String> + Send + Sync>;

/// How copies are made, and where they wait to be sent.
#[derive(Clone)]
pub struct Backup {
    /// Makes the copy.
    pub copy: Copy,
    /// A directory only we can read.
    pub dir: PathBuf,
}

impl std::fmt::Debug for Backup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backup").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Maximum number of copies at a time. Each takes as much of the disk as the store until its client
/// has read it.
const MAX_COPIES: usize = 2;
static COPIES: Semaphore = Semaphore::const_new(MAX_COPIES);

/// How much is read and sent at a time.
const CHUNK: usize = 256 * 1024;

/// Sends a copy of the store.
pub(crate) async fn answer(server: &Inner, parts: &Parts) -> Result<Response<Body>, Failure> {
    if parts.method != Method::GET {
        return Err(not_allowed());
    }
    let Some(backup) = server.options.backup.clone() else {
        return Err(Failure::new(
            404,
            "NotFound",
            "this server keeps nothing that it could copy; its store has tools of its own",
        ));
    };
    let permit = COPIES.try_acquire().map_err(|_| {
        let why = format!("{MAX_COPIES} copies of the store are being taken, please try again later");
        Failure { details: Some(json!({"retryAfterSeconds": 10})), ..Failure::new(429, "TooManyRequests", why) }
    })?;
    let file = backup.dir.join(format!("backup-{}.tmp", uuid::Uuid::new_v4()));
    let guard = Temporary { file: file.clone(), _permit: permit };
    let failed = |why: String| Failure::internal(format!("the store cannot be copied: {why}"));
    tokio::task::spawn_blocking(move || (backup.copy)(&file))
        .await
        .map_err(|error| failed(error.to_string()))?
        .map_err(failed)?;
    let file = tokio::fs::File::open(&guard.file).await.map_err(|error| failed(error.to_string()))?;
    let chunks = stream::unfold((file, guard), |(mut file, guard)| async move {
        let mut chunk = vec![0; CHUNK];
        match file.read(&mut chunk).await {
            Ok(read) if read > 0 => {
                chunk.truncate(read);
                Some((Ok(Frame::data(Bytes::from(chunk))), (file, guard)))
            }
            _ => None,
        }
    });
    let mut response = Response::new(StreamBody::new(chunks).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    Ok(response)
}

/// Removes its file in the end.
struct Temporary {
    file: PathBuf,
    _permit: SemaphorePermit<'static>,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = std::fs::remove_file(&self.file);
    }
}
