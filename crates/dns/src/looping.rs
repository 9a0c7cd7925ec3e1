//! `loop`: does a question come back to us? Then forwarding would never end, and it is better to say so and stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use fairlead_zone::Name;
use fairlead_zone::message;
use tokio::net::UdpSocket;
use tokio::sync::Notify;

use crate::ask::Ask;
use crate::{random, words};

/// A question that comes more often than this comes back to us.
const TIMES: u32 = 2;
/// For how long it is tried to ask at all.
const ATTEMPTS: u32 = 30;

/// A name nobody else asks for.
#[derive(Debug)]
pub(crate) struct Looping {
    zone: Name,
    name: Name,
    seen: AtomicU32,
    off: AtomicBool,
    found: Notify,
}

impl Looping {
    /// Looks for loops of a zone.
    pub(crate) fn new(zone: &Name) -> std::io::Result<Looping> {
        // A client that could guess the name would end the server by asking for it.
        let number = || random::bytes().map(u64::from_be_bytes);
        let text = format!("{}.{}.{zone}", number()?, number()?);
        // Two long labels may be too many for a long zone.
        let name = text.trim_end_matches("..").parse().unwrap_or_else(|_| zone.clone());
        let (seen, off) = (AtomicU32::new(0), AtomicBool::new(false));
        Ok(Looping { zone: zone.clone(), name, seen, off, found: Notify::new() })
    }

    /// A question came.
    pub(crate) fn seen(&self, ask: &Ask) {
        if ask.rtype != words::HINFO || self.off.load(Ordering::Relaxed) || ask.name != self.name {
            return;
        }
        if self.seen.fetch_add(1, Ordering::Relaxed) >= TIMES {
            self.found.notify_one();
        }
    }

    /// Asks ourselves, and waits for what comes of it: the loop, if there is one, else for ever.
    pub(crate) async fn watch(self: Arc<Self>, at: SocketAddr) -> String {
        let asked = async {
            for _ in 0..ATTEMPTS {
                self.seen.store(0, Ordering::Relaxed);
                if ask(at, &self.name).await.is_ok() {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            self.off.store(true, Ordering::Relaxed);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = asked => {}
            () = self.found.notified() => {}
        }
        format!(
            "loop ({at}) detected for zone {:?}: questions that are forwarded come back; look at what `forward` names",
            self.zone
        )
    }
}

async fn ask(at: SocketAddr, name: &Name) -> std::io::Result<()> {
    let any: SocketAddr = if at.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(at).await?;
    socket.send(&message::query(u16::from_be_bytes(random::bytes()?), name, words::HINFO, None)).await?;
    let mut buffer = [0; 512];
    tokio::time::timeout(Duration::from_secs(6), socket.recv(&mut buffer)).await.map_err(std::io::Error::other)??;
    Ok(())
}
