//! Why a Node does not answer for an address: one reason a Node, in the words people are shown.

use std::fmt;

use super::{EXCLUDED, TO_BE_DELETED};

/// Why a Node does not answer for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion {
    /// No load balancer was ever heard there.
    Unheard,
    /// Its heart beats no more.
    Silent,
    /// It said that it goes.
    Left,
    /// The kernel of the Node does not take the rules that guard addresses.
    Unguarded,
    /// There is no such Node.
    NoNode,
    /// Its label says so.
    Labelled,
    /// The autoscaler takes it away.
    ToBeDeleted,
    /// Its condition says so.
    NetworkUnavailable,
    /// No advertisement selects it.
    NotSelected,
    /// It has no ready endpoint.
    NoLocalEndpoint,
    /// Another is on the address' network.
    NoNetwork,
    /// Another is ready.
    NotReady,
    /// Nothing is wrong with it.
    AnotherDrawn,
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exclusion::Unheard => f.write_str("no load balancer runs there"),
            Exclusion::Silent => f.write_str("its heartbeat stopped"),
            Exclusion::Left => f.write_str("its load balancer was stopped"),
            Exclusion::Unguarded => f.write_str("its kernel does not take the rules that guard the addresses"),
            Exclusion::NoNode => f.write_str("there is no Node of this name"),
            Exclusion::Labelled => write!(f, "it has the label {EXCLUDED}"),
            Exclusion::ToBeDeleted => write!(f, "it has the taint {TO_BE_DELETED}"),
            Exclusion::NetworkUnavailable => f.write_str("its condition NetworkUnavailable is true"),
            Exclusion::NotSelected => f.write_str("no advertisement of the address selects it"),
            Exclusion::NoLocalEndpoint => {
                f.write_str("it has no ready endpoint, which externalTrafficPolicy Local asks for")
            }
            Exclusion::NoNetwork => f.write_str("no interface of it has the address' network"),
            Exclusion::NotReady => f.write_str("it is not ready, and another Node is"),
            Exclusion::AnotherDrawn => f.write_str("it could; another Node was drawn"),
        }
    }
}
