//! What the parts of the path through this process share: what a listener serves at the moment, and the connections it accepts.
//!
//! A [`Serving`] is a value that is replaced whole when a Service, a certificate or the endpoints change. A connection of bytes
//! keeps the one it was accepted under; HTTP looks again for every request, through [`Current`].

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use crate::backends::Backends;
use crate::log::Log;
use crate::spec::{Listener, Spec};
use crate::tls::{ClientTls, ServerTls};

/// What one listener serves.
#[derive(Debug)]
pub struct Serving {
    /// The load balancer.
    pub spec: Arc<Spec>,
    /// This listener.
    pub listener: Listener,
    /// The addresses it listens at.
    pub addresses: Vec<IpAddr>,
    /// Where connections and requests go. The same value across replacements, so that counts and health live on.
    pub backends: Arc<Backends>,
    /// TLS towards clients, if the listener has it.
    pub tls: Option<Arc<ServerTls>>,
    /// TLS towards backends, if the listener re-encrypts.
    pub reencrypt: Option<Arc<ClientTls>>,
    /// Where its access log goes.
    pub log: Option<Log>,
    /// Who may use it: `loadBalancerSourceRanges` and the ranges of the groups it names together. `None`: everybody.
    pub sources: Option<Arc<[ipnet::IpNet]>>,
    /// Whose word on a client's address is taken: PROXY headers are read from these, and `X-Forwarded-For` of these is kept.
    pub trusted: Arc<[ipnet::IpNet]>,
}

/// What a listener serves now.
#[derive(Debug)]
pub struct Current(RwLock<Arc<Serving>>);

impl Current {
    /// Serves this from the start.
    pub fn new(serving: Arc<Serving>) -> Current {
        Current(RwLock::new(serving))
    }

    /// What is served at this moment.
    pub fn get(&self) -> Arc<Serving> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves this from now on.
    pub fn set(&self, serving: Arc<Serving>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = serving;
    }
}

/// Who is at the other end of an accepted connection.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    /// The client, by its PROXY header if a trusted front sent one.
    pub client: SocketAddr,
    /// The address the client meant.
    pub local: SocketAddr,
    /// Who connected to us.
    pub peer: SocketAddr,
}
