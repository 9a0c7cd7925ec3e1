//! Opens and closes the ports: that of the proxy itself once, those of Services as they come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairlead_api::kinds;
use fairlead_api::source::Key;
use fairlead_api::view::Meta;
use fairlead_cluster::{Recorder, Reference, Severity};
use tokio_util::sync::CancellationToken;

use super::Health;
use crate::Error;
use crate::http::{self, Question};

/// How long until a port that could not be opened is tried again.
pub(crate) const RETRY: Duration = Duration::from_secs(5);

/// Where to listen, and whom to tell.
#[derive(Debug, Clone)]
pub struct Listeners {
    /// Where `/healthz` and `/livez` are; `None`: nowhere.
    pub healthz: Option<SocketAddr>,
    /// Whether it is the end if that address cannot be had.
    pub hard_fail: bool,
    /// The name of this Node.
    pub node: String,
    /// Who writes Events about ports of Services that cannot be opened.
    pub recorder: Option<Recorder>,
}

/// Answers until told to stop. Fails only if the proxy's own port cannot be had and that is to be the end.
pub async fn serve(health: Health, listeners: Listeners, stop: CancellationToken) -> Result<(), Error> {
    let own = proxy(&health, &listeners, &stop);
    let services = services(&health, &listeners, &stop);
    tokio::pin!(own, services);
    tokio::select! {
        result = &mut own => {
            result?;
            services.await;
        }
        () = &mut services => {}
    }
    Ok(())
}

async fn proxy(health: &Health, listeners: &Listeners, stop: &CancellationToken) -> Result<(), Error> {
    let Some(address) = listeners.healthz else { return Ok(()) };
    let Some(listener) = bind("healthz", address, listeners.hard_fail, stop).await? else { return Ok(()) };
    let health = health.clone();
    let reply = move |question: Question| std::future::ready(health.answer(&question));
    http::serve(listener, stop.clone(), reply).await;
    Ok(())
}

/// Listens as soon as that is possible; `None` when told to stop before.
pub(crate) async fn bind(
    what: &'static str,
    address: SocketAddr,
    hard_fail: bool,
    stop: &CancellationToken,
) -> Result<Option<tokio::net::TcpListener>, Error> {
    let mut told = false;
    loop {
        let error = match http::listen(address) {
            Ok(listener) => return Ok(Some(listener)),
            Err(error) => error,
        };
        if hard_fail {
            return Err(Error::Io { what: format!("listening for {what} at {address}"), error });
        }
        if !told {
            tracing::warn!(what, %address, %error, "cannot listen; trying again");
            told = true;
        }
        if stop.run_until_cancelled(tokio::time::sleep(RETRY)).await.is_none() {
            return Ok(None);
        }
    }
}

/// A port that is open.
struct Open {
    service: Arc<Key>,
    close: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

async fn services(health: &Health, listeners: &Listeners, stop: &CancellationToken) {
    let mut open: BTreeMap<SocketAddr, Open> = BTreeMap::new();
    let mut failed = BTreeSet::new();
    while !stop.is_cancelled() {
        let wanted = health.wanted();
        close(&mut open, &wanted).await;
        failed.retain(|address| wanted.contains_key(address));
        for (address, service) in &wanted {
            if open.contains_key(address) {
                continue;
            }
            match open_port(health, *address, service, stop) {
                Ok(port) => {
                    failed.remove(address);
                    open.insert(*address, port);
                }
                Err(error) if failed.insert(*address) => tell(listeners, service, *address, &error),
                Err(_) => {}
            }
        }
        let again =
            async { if failed.is_empty() { std::future::pending().await } else { tokio::time::sleep(RETRY).await } };
        tokio::select! {
            () = stop.cancelled() => {}
            () = health.shared.ports.notified() => {}
            () = again => {}
        }
    }
}

/// Closes what nobody wants any more, and waits until it is closed: its port may be wanted by another.
async fn close(open: &mut BTreeMap<SocketAddr, Open>, wanted: &BTreeMap<SocketAddr, Arc<Key>>) {
    let stale: Vec<SocketAddr> = open
        .iter()
        .filter(|(address, port)| wanted.get(address) != Some(&port.service))
        .map(|(address, _)| *address)
        .collect();
    for port in stale.iter().filter_map(|address| open.remove(address)) {
        port.close.cancel();
        let _ = port.task.await;
    }
}

fn open_port(health: &Health, address: SocketAddr, service: &Arc<Key>, stop: &CancellationToken) -> io::Result<Open> {
    let listener = http::listen(address)?;
    let close = stop.child_token();
    let (health, asked) = (health.clone(), service.clone());
    let family = fairlead_plan::family_of(address.ip());
    let reply = move |_: Question| std::future::ready(health.answer_for(&asked, family));
    let task = tokio::spawn(http::serve(listener, close.clone(), reply));
    Ok(Open { service: service.clone(), close, task })
}

fn tell(listeners: &Listeners, service: &Key, address: SocketAddr, error: &io::Error) {
    let node = &listeners.node;
    let message = format!("node {node} failed to start healthcheck \"{service}\" on port {}: {error}", address.port());
    tracing::warn!(%service, %address, %error, "cannot listen for a Service's health check; trying again");
    let Some(recorder) = &listeners.recorder else { return };
    let meta = Meta { namespace: service.namespace.to_string(), name: service.name.to_string(), ..Meta::default() };
    let about = Reference::to(&kinds::SERVICE, &meta);
    recorder.record(about, Severity::Warning, "FailedToStartServiceHealthcheck", message);
}
