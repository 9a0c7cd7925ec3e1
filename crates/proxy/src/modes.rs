//! Which mode runs: the one asked for, or, if the kernel cannot do that, the next best, saying so.

use std::time::Duration;

use fairlead_program::{iptables as ipt, nft};

use crate::iptables::{self, Iptables};
use crate::ipvs::{self, Ipvs};
use crate::nftables::{self, Nftables};
use crate::userspace::{self, Userspace};
use crate::{Dataplane, Error, Mode, Settings};

/// How long changes are gathered in modes in which each costs the run of a program.
const GATHERED: Duration = Duration::from_secs(1);

/// A mode that runs, and why it is not the one asked for.
pub(crate) struct Chosen {
    pub(crate) dataplane: Box<dyn Dataplane>,
    pub(crate) fallback: Option<String>,
}

/// Opens the mode the settings ask for. IPVS that is not there falls back to iptables; without a wish, nftables does.
pub(crate) fn open(settings: &Settings) -> Result<Chosen, Error> {
    let (wanted, next) = match settings.mode {
        None => (Mode::Nftables, Some(Mode::Iptables)),
        Some(Mode::Ipvs) => (Mode::Ipvs, Some(Mode::Iptables)),
        Some(mode) => (mode, None),
    };
    match (dataplane(wanted, settings), next) {
        (Ok(dataplane), _) => Ok(Chosen { dataplane, fallback: None }),
        (Err(error), None) => Err(error),
        // Another mode would not have more descriptors or memory, and would stay.
        (Err(error), Some(_)) if error.is_temporary() => Err(error),
        (Err(error), Some(next)) => match dataplane(next, settings) {
            Ok(dataplane) => {
                let why = format!("mode {wanted} cannot be used here ({error}): using mode {next} instead");
                Ok(Chosen { dataplane, fallback: Some(why) })
            }
            Err(other) if other.is_temporary() => Err(other),
            Err(other) => Err(Error::Missing(format!("no mode can be used here: {wanted}: {error}; {next}: {other}"))),
        },
    }
}

/// Opens a mode in this thread's network namespace; an error if the kernel cannot do it.
pub fn dataplane(mode: Mode, settings: &Settings) -> Result<Box<dyn Dataplane>, Error> {
    let masquerade_mark = 1 << settings.masquerade_bit;
    let thorough = settings.sync_period;
    match mode {
        Mode::Nftables => Ok(Box::new(Nftables::open(nft::Options { masquerade_mark }, thorough)?)),
        Mode::Iptables => {
            let options = ipt::Options { masquerade_mark, drop_invalid: !settings.conntrack.tcp_be_liberal };
            Ok(Box::new(Iptables::open(options, thorough)?))
        }
        Mode::Userspace => {
            let udp_timeout = settings.userspace.udp_idle;
            let rules = nft::Options { masquerade_mark };
            let options = userspace::Options { rules, thorough, udp_timeout, ..userspace::Options::default() };
            Ok(Box::new(Userspace::open(options)?))
        }
        Mode::Ipvs => Ok(Box::new(Ipvs::open(settings)?)),
    }
}

/// What removes everything a mode has in the kernel, and says what that was.
type Remove = fn() -> Result<Vec<String>, Error>;

/// Removes what other modes left here.
pub(crate) fn remove_others(mode: Mode) {
    // Modes nftables and userspace share a table: whoever loads it takes it over.
    let tables = matches!(mode, Mode::Nftables | Mode::Userspace);
    let others: [(bool, Remove); 3] =
        [(!tables, nftables::remove), (mode != Mode::Iptables, iptables::remove), (mode != Mode::Ipvs, ipvs::remove)];
    for (_, remove) in others.into_iter().filter(|(other, _)| *other) {
        match remove() {
            Ok(removed) => removed.iter().for_each(|what| tracing::info!("removed {what}, of another mode")),
            Err(error) => tracing::warn!(%error, "cannot remove what another mode left"),
        }
    }
}

/// The least time between two changes of the kernel.
pub(crate) fn pause(settings: &Settings, mode: Mode) -> Duration {
    settings.min_sync_period.unwrap_or(match mode {
        Mode::Iptables => GATHERED,
        _ => Duration::ZERO,
    })
}
