//! Which backend gets a request, and who gets it next when that one fails? Once more only where nobody can notice: nothing was
//! sent, or what was sent may be sent twice and nothing came back.

use std::net::SocketAddr;
use std::sync::Arc;

use super::Connection;
use super::dial::{self, Backend, Shared};
use super::h2c::Line;
use super::refusal::Refusal;
use super::watch::Watch;
use crate::backends::Chosen;
use crate::engine::backend_permits::SourcePlace;
use crate::serving::Serving;

/// How many backends get a request at most.
const MOST: usize = 3;

/// The backends a request has been to.
#[derive(Debug)]
pub(crate) struct Attempts {
    serving: Arc<Serving>,
    tried: Vec<SocketAddr>,
    /// How often it was sent again.
    repeated: usize,
    /// Connections that waited are not to be trusted any more.
    fresh: bool,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The client is gone.
    Client,
    /// The request cannot be passed on.
    Refused(Refusal),
    /// The backend broke off: after nothing at all, or in the midst of its answer.
    Broke { silent: bool },
    /// Its answer is none.
    Unreadable,
    /// It said nothing in time.
    Late,
    /// The backend sent too many interim answers.
    Interim,
}

/// A connection of HTTP/1 to a backend for one request.
#[derive(Debug)]
pub(crate) struct BackendConnection {
    pub(crate) chosen: Chosen,
    pub(crate) backend: Backend,
    /// The client's place among those that use backends.
    pub(crate) place: SourcePlace,
}

/// What a failed request was sent on, and what it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    /// The connection had been used before.
    pub(crate) reused: bool,
    /// It may be sent twice, and all of it is still there.
    pub(crate) replayable: bool,
}

impl Attempts {
    /// None yet.
    pub(crate) fn new(serving: Arc<Serving>) -> Attempts {
        Attempts { serving, tried: Vec::new(), repeated: 0, fresh: false }
    }

    /// The next backend.
    pub(crate) fn choose(&self, connection: &Connection) -> Result<Chosen, Refusal> {
        let Serving { backends, spec, .. } = &*self.serving;
        if let Some(chosen) = backends.choose(spec.choice, connection.ends.client, &self.tried) {
            return Ok(chosen);
        }
        connection.context.counters().no_backend.add(1);
        Err(if self.tried.is_empty() { Refusal::NOBODY } else { Refusal::UNREACHABLE })
    }

    /// A connection of HTTP/1 to the next backend that can be reached. `surely`: the request cannot be sent twice, so a
    /// connection that waited must be known to be alive. The watch is bound to it.
    pub(crate) async fn reach(
        &mut self,
        connection: &Connection,
        shared: &Shared,
        watch: &mut Watch,
        surely: bool,
    ) -> Result<BackendConnection, Refusal> {
        let engine = connection.context.thread();
        let most = engine.options().connect;
        let place = match watch.held.source().try_place() {
            Some(place) => place,
            None => {
                // The client has all connections it may have: those of its requests that do not
                // take their answers give way to its others.
                let source = watch.held.source();
                let room = || engine.memory.end_stalled(Some(source));
                Box::pin(source.place(most, room)).await.ok_or(Refusal::BUSY)?
            }
        };
        loop {
            let chosen = self.choose(connection)?;
            watch.bind(&connection.context, &chosen);
            let (to, tls) = (chosen.address(), self.serving.reencrypt.as_ref());
            let greeting = dial::greeting(&self.serving, connection);
            if !self.fresh
                && greeting.is_empty()
                && let Some(backend) = shared.pool.take(to, tls, surely)
            {
                return Ok(BackendConnection { chosen, backend, place });
            }
            let connected = Box::pin(async {
                let permit = engine.backends.acquire(to, most, || {
                    shared.pool.close_one();
                    engine.memory.end_stalled(None);
                });
                let permit = permit.await.ok_or(Refusal::BUSY)?;
                let stream = dial::connect(to, tls, &greeting, most).await?;
                Ok(Backend::new(stream, !greeting.is_empty(), permit))
            });
            match connected.await {
                Ok(backend) => return Ok(BackendConnection { chosen, backend, place }),
                // That says nothing of the backend.
                Err(Refusal::BUSY) => return Err(Refusal::BUSY),
                Err(refusal) => self.unreachable(&chosen, connection, refusal)?,
            }
        }
    }

    /// A connection of HTTP/2 to the next backend that can be reached. The watch is bound to it.
    pub(crate) async fn open(
        &mut self,
        connection: &Connection,
        shared: &Shared,
        watch: &mut Watch,
    ) -> Result<(Chosen, Line), Refusal> {
        loop {
            let chosen = self.choose(connection)?;
            watch.bind(&connection.context, &chosen);
            let most = connection.context.thread().options().connect;
            let greeting = dial::greeting(&self.serving, connection);
            let engine = connection.context.thread();
            let tls = self.serving.reencrypt.as_ref();
            match shared.lines.get(chosen.address(), tls, &greeting, most, engine, &shared.pool).await {
                Ok(line) => return Ok((chosen, line)),
                Err(Refusal::BUSY) => return Err(Refusal::BUSY),
                Err(refusal) => self.unreachable(&chosen, connection, refusal)?,
            }
        }
    }

    /// A backend could not be reached: another one, unless enough were tried.
    pub(crate) fn unreachable(&mut self, chosen: &Chosen, on: &Connection, refusal: Refusal) -> Result<(), Refusal> {
        chosen.failed();
        on.context.counters().dial_failures.add(1);
        self.tried.push(chosen.address());
        if self.tried.len() < MOST { Ok(()) } else { Err(refusal) }
    }

    /// Whether a request that failed is to be sent once more; else what its client is told, if it is still there.
    pub(crate) fn again(
        &mut self,
        failure: Failure,
        chosen: &Chosen,
        sent: Sent,
        on: &Connection,
    ) -> Result<(), Option<Refusal>> {
        let silent = match failure {
            Failure::Client => return Err(None),
            Failure::Refused(refusal) => return Err(Some(refusal)),
            Failure::Broke { silent } => silent,
            Failure::Interim => {
                chosen.failed();
                return Err(Some(Refusal::INTERIM));
            }
            Failure::Unreadable | Failure::Late => {
                chosen.failed();
                return Err(Some(if failure == Failure::Late { Refusal::LATE } else { Refusal::ANSWER }));
            }
        };
        // A connection that waited may have been closed by a backend that is well.
        if !(sent.reused && silent) {
            chosen.failed();
        }
        if !silent || !sent.replayable || self.repeated + 1 >= MOST {
            return Err(Some(Refusal::BROKE_OFF));
        }
        if sent.reused {
            self.fresh = true;
        } else {
            self.tried.push(chosen.address());
        }
        self.repeated += 1;
        on.context.counters().retries.add(1);
        Ok(())
    }
}
