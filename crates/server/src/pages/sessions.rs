//! Who is signed in: links that work once become sessions that last half a day. All in memory, bounded, and known only by the
//! hashes of their secrets: a look that takes longer tells nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fairlead_api::Failure;
use jiff::{SignedDuration, Timestamp};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::auth::User;

#[cfg(test)]
mod tests;

/// The user of every session.
const USER: &str = "fairlead:ui";
/// The group of those who look.
const VIEWERS: &str = "fairlead:viewers";
/// The group of those who may change something, too.
const EDITORS: &str = "fairlead:editors";
/// How long a session lasts.
pub(crate) const LASTS: SignedDuration = SignedDuration::from_hours(12);
/// How many links, and how many sessions, there are at most. One more ends the one that would end next.
const MOST: usize = 1000;
/// How many random bytes a secret has, and how many letters as text.
const RANDOM: usize = 32;
const LETTERS: usize = 43;

/// A way to sign in once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The secret.
    pub token: String,
    /// When it stops to work.
    pub expires: Timestamp,
}

impl Link {
    /// Where a browser goes. What follows `#` it tells nobody, so it is in no log.
    pub fn path(&self) -> String {
        format!("/ui/#token={}", self.token)
    }
}

/// Somebody who signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    /// Whether they may change something.
    pub(crate) write: bool,
    pub(crate) expires: Timestamp,
    /// What only the page knows that signed in.
    proof: Hash,
}

/// What somebody gets who signs in: two secrets, for a cookie goes to every server of a host name, whatever its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signed {
    /// The browser keeps it as a cookie.
    pub(crate) id: String,
    /// The page keeps it where no page of another port can read it.
    pub(crate) proof: String,
}

impl Session {
    pub(crate) fn new(write: bool, expires: Timestamp, proof: &str) -> Session {
        Session { write, expires, proof: hash(proof.as_bytes()) }
    }

    /// Whether a request that shows this is one of the page that signed in.
    pub(crate) fn is_proved_by(&self, shown: &[u8]) -> bool {
        hash(shown) == self.proof
    }

    pub(crate) fn user(&self) -> User {
        let groups = [VIEWERS].into_iter().chain(self.write.then_some(EDITORS)).chain([crate::auth::AUTHENTICATED]);
        User { name: USER.to_owned(), groups: groups.map(str::to_owned).collect(), ..User::default() }
    }
}

/// The links and sessions there are.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Whether a session of it may write, and until when it works.
    links: HashMap<Hash, (bool, Timestamp)>,
    sessions: HashMap<Hash, Session>,
}

type Hash = [u8; 32];

impl Sessions {
    /// Makes a link.
    pub(crate) fn link(&self, write: bool, lasts: SignedDuration, now: Timestamp) -> Result<Link, Failure> {
        let link = Link { token: secret()?, expires: now.saturating_add(lasts).unwrap_or(now) };
        let mut known = self.known();
        make_room(&mut known.links, |(_, expires)| *expires);
        known.links.insert(hash(link.token.as_bytes()), (write, link.expires));
        Ok(link)
    }

    /// Makes a session of a link, which works no more then. `None`: there is no such link.
    pub(crate) fn redeem(&self, token: &str, now: Timestamp) -> Result<Option<Signed>, Failure> {
        if token.len() != LETTERS {
            return Ok(None);
        }
        let (id, proof) = (secret()?, secret()?);
        let mut known = self.known();
        let Some((write, expires)) = known.links.remove(&hash(token.as_bytes())) else { return Ok(None) };
        if expires <= now {
            return Ok(None);
        }
        make_room(&mut known.sessions, |session| session.expires);
        let expires = now.saturating_add(LASTS).unwrap_or(now);
        known.sessions.insert(hash(id.as_bytes()), Session::new(write, expires, &proof));
        Ok(Some(Signed { id, proof }))
    }

    /// The session with this secret.
    pub(crate) fn find(&self, id: &str, now: Timestamp) -> Option<Session> {
        if id.len() != LETTERS {
            return None;
        }
        let key = hash(id.as_bytes());
        let mut known = self.known();
        if known.sessions.get(&key)?.expires <= now {
            known.sessions.remove(&key);
        }
        known.sessions.get(&key).cloned()
    }

    /// Ends a session.
    pub(crate) fn end(&self, id: &str) {
        self.known().sessions.remove(&hash(id.as_bytes()));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go what would end next, if there are too many.
fn make_room<T>(all: &mut HashMap<Hash, T>, expires: impl Fn(&T) -> Timestamp) {
    while all.len() >= MOST {
        let Some(next) = all.iter().min_by_key(|(_, one)| expires(one)).map(|(key, _)| *key) else { return };
        all.remove(&next);
    }
}

fn secret() -> Result<String, Failure> {
    let mut random = [0; RANDOM];
    let filled = SystemRandom::new().fill(&mut random);
    filled.map_err(|_| Failure::internal("this machine gives no random numbers"))?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

fn hash(secret: &[u8]) -> Hash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, secret).as_ref());
    hash
}
