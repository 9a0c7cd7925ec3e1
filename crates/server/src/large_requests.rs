//! Requests that are much work: bodies of more than [`LARGE`] bytes, and changes of objects of that size. They are decoded,
//! checked and encoded apart from the workers of the run time, a few at a time, and their bytes are counted.
//!
//! A body of 3 MiB keeps a processor busy for up to a second. On the workers, two of them would keep all other requests waiting.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::{Bytes, BytesMut};
use fairlead_api::{Failure, json};
use fairlead_runtime::{Account, Budget, Limits, Permit, Sender};
use http_body_util::BodyExt;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::auth::User;
use crate::body::MAX_BODY;

/// Size in bytes from which on a body or an object is large. Most objects have less than 10 KiB.
pub(crate) const LARGE: usize = 64 << 10;
/// Maximum number of bytes of large bodies under way, of all users.
const BYTES: u64 = 64 << 20;
/// Maximum number of bytes of large bodies under way, of one user: five bodies of the largest size.
const BYTES_PER_USER: u64 = 16 << 20;
/// Bytes that are asked for at a time while a body of unknown length comes in.
const STEP: usize = 256 << 10;
/// Number of users from which on those without requests are forgotten.
const USERS: usize = 256;

/// The places of large requests.
#[derive(Debug)]
pub(crate) struct LargeRequests {
    bytes: Budget,
    /// As many as processors: more at a time would only be slower.
    places: Arc<Semaphore>,
    /// Places per user. Half of all, so that there is room for a second user whatever the first one does.
    per_user: usize,
    users: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A place in which a large request is worked on.
#[derive(Debug)]
pub(crate) struct WorkPermit {
    _own: OwnedSemaphorePermit,
    _common: OwnedSemaphorePermit,
}

/// A body, with the permit for its bytes if it is large.
#[derive(Debug)]
pub(crate) struct CountedBody {
    pub(crate) bytes: Bytes,
    _permit: Option<Permit>,
}

impl LargeRequests {
    /// Returns places whose bytes are a budget of `account`.
    pub(crate) fn new(account: &Account) -> LargeRequests {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let places = processors.clamp(2, 8);
        LargeRequests {
            bytes: account.budget("api large bodies", Limits { total: BYTES, per_sender: BYTES_PER_USER }),
            places: Arc::new(Semaphore::new(places)),
            per_user: places / 2,
            users: Mutex::default(),
        }
    }

    /// Reads a body whole. 413 if it is longer than the server reads, 429 if its user or all users have too much under way. The bytes
    /// of components of this process are not counted (`charged` is `None`): the control loop is never refused.
    pub(crate) async fn collect<B>(&self, charged: Option<&User>, body: B) -> Result<CountedBody, Failure>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let too_large =
            || Failure::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {MAX_BODY}"));
        let announced = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
        if announced.is_some_and(|length| length > MAX_BODY) {
            return Err(too_large());
        }
        let mut permit = match announced {
            Some(length) if length > LARGE => self.acquire(charged, length)?,
            _ => None,
        };
        let mut body = pin!(body);
        let mut parts: Vec<Bytes> = Vec::new();
        let mut size = 0;
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| Failure::bad_request(format!("the body could not be read: {}", error.into())))?;
            let Ok(data) = frame.into_data() else { continue };
            size += data.len();
            if size > MAX_BODY {
                return Err(too_large());
            }
            let held = permit.as_ref().map_or(LARGE as u64, Permit::amount);
            if size as u64 > held && charged.is_some() {
                let wanted = size.next_multiple_of(STEP);
                match &mut permit {
                    Some(permit) => permit.resize(wanted as u64).map_err(|_| too_many())?,
                    None => permit = self.acquire(charged, wanted)?,
                }
            }
            parts.push(data);
        }
        let bytes = match parts.len() {
            0 => Bytes::new(),
            1 => parts.swap_remove(0),
            _ => {
                let mut whole = BytesMut::with_capacity(size);
                parts.iter().for_each(|part| whole.extend_from_slice(part));
                whole.freeze()
            }
        };
        Ok(CountedBody { bytes, _permit: permit })
    }

    fn acquire(&self, charged: Option<&User>, size: usize) -> Result<Option<Permit>, Failure> {
        let Some(user) = charged else { return Ok(None) };
        self.bytes.acquire(&Sender::User(user.name.as_str().into()), size as u64).map(Some).map_err(|_| too_many())
    }

    /// Waits for a place if `size` is large. A user's own places come first, so that at most that many of theirs stand in the
    /// common queue.
    pub(crate) async fn enter(&self, user: &str, size: usize) -> Option<WorkPermit> {
        if size <= LARGE {
            return None;
        }
        // The semaphores are never closed.
        let own = self.places_of(user).acquire_owned().await.ok()?;
        let common = self.places.clone().acquire_owned().await.ok()?;
        Some(WorkPermit { _own: own, _common: common })
    }

    fn places_of(&self, user: &str) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = users.get(user).and_then(Weak::upgrade) {
            return places;
        }
        if users.len() >= USERS {
            users.retain(|_, places| places.strong_count() > 0);
        }
        let places = Arc::new(Semaphore::new(self.per_user));
        users.insert(user.to_owned(), Arc::downgrade(&places));
        places
    }
}

/// Polls a future apart from the workers of the run time if it has a place for large requests.
pub(crate) async fn beside_workers<F: Future>(place: Option<&WorkPermit>, future: F) -> F::Output {
    if place.is_none() {
        return future.await;
    }
    let mut future = pin!(future);
    std::future::poll_fn(|context| apart(|| future.as_mut().poll(context))).await
}

/// Does work apart from the workers of the run time, if it has any: another thread takes the tasks of this one meanwhile.
pub(crate) fn apart<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::CurrentThread) | Err(_) => work(),
        Ok(_) => tokio::task::block_in_place(work),
    }
}

/// Does work apart from the workers of the run time if it is much.
pub(crate) fn apart_if<T>(large: bool, work: impl FnOnce() -> T) -> T {
    if large { apart(work) } else { work() }
}

/// 429 for more large bodies than are read at a time.
fn too_many() -> Failure {
    let message = "too many large request bodies under way, please try again later";
    Failure { details: Some(json!({"retryAfterSeconds": 1})), ..Failure::new(429, "TooManyRequests", message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

    fn user(name: &str) -> User {
        User { name: name.to_owned(), ..User::default() }
    }

    fn body(size: usize) -> Full<Bytes> {
        Full::new(vec![b' '; size].into())
    }

    #[tokio::test]
    async fn large_bodies_are_counted_per_user_and_given_back() {
        let large = LargeRequests::new(&Account::default());
        let (ann, bob) = (user("ann"), user("bob"));
        let mut held = Vec::new();
        for _ in 0..5 {
            held.push(large.collect(Some(&ann), body(MAX_BODY)).await.expect("there is room"));
        }
        assert_eq!(large.collect(Some(&ann), body(MAX_BODY)).await.unwrap_err().code, 429);
        assert_eq!(large.collect(Some(&ann), body(LARGE)).await.expect("a small one").bytes.len(), LARGE);
        held.push(large.collect(Some(&bob), body(MAX_BODY)).await.expect("it is another user"));
        held.push(large.collect(None, body(MAX_BODY)).await.expect("it is a component of this process"));
        held.clear();
        assert!(large.collect(Some(&ann), body(MAX_BODY)).await.is_ok());
        assert_eq!(large.collect(Some(&ann), body(MAX_BODY + 1)).await.unwrap_err().code, 413);
        assert_eq!(large.bytes.in_use(), 0);
    }

    #[tokio::test]
    async fn one_user_does_not_have_all_places() {
        let large = LargeRequests::new(&Account::default());
        let mut held = Vec::new();
        for _ in 0..large.per_user {
            held.push(large.enter("ann", LARGE + 1).await);
        }
        let third = large.enter("ann", LARGE + 1);
        let mut third = pin!(third);
        assert!(futures_util::poll!(third.as_mut()).is_pending());
        assert!(large.enter("bob", LARGE + 1).await.is_some());
        assert!(large.enter("ann", LARGE).await.is_none());
        held.clear();
        assert!(third.await.is_some());
    }
}
