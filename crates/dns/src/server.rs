//! Puts the parts together and runs them: names, blocks, sockets and pages, as settings say, until told to stop.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fairlead_cluster::Cluster;
use fairlead_runtime::Account;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Error;
use crate::bounds::Bounds;
use crate::build::{self, Blocks};
use crate::files::Corefile;
use crate::listen::Listener;
use crate::log::Logger;
use crate::metrics::Metrics;
use crate::names::{Names, Wanted, follow};
use crate::router::Router;
use crate::settings::{Reload, Settings};
use crate::status::{Pages, Status};

/// Serves names with these settings until told to stop.
pub async fn run(cluster: Option<Cluster>, settings: Settings, stop: CancellationToken) -> Result<(), Error> {
    let metrics = Metrics::with_account(&settings.account);
    run_measured(cluster, settings, metrics, stop).await
}

/// The same, counted where others look.
pub async fn run_measured(
    cluster: Option<Cluster>,
    settings: Settings,
    metrics: Metrics,
    stop: CancellationToken,
) -> Result<(), Error> {
    let mut server = Server::new(cluster, metrics, &settings.account)?;
    server.apply(settings).await?;
    server.serve(None, stop).await
}

/// Serves names as a Corefile says until told to stop. If that has `reload`, changes of the file are followed.
pub async fn run_file(cluster: Option<Cluster>, corefile: Corefile, stop: CancellationToken) -> Result<(), Error> {
    let account = &corefile.settings.account;
    let mut server = Server::new(cluster, Metrics::with_account(account), account)?;
    server.apply(corefile.read()?).await?;
    server.serve(Some(corefile), stop).await
}

struct Server {
    cluster: Option<Cluster>,
    settings: Settings,
    metrics: Metrics,
    logger: Logger,
    status: Status,
    pages: Pages,
    bounds: Bounds,
    listeners: BTreeMap<SocketAddr, Listener>,
    names: Vec<Followed>,
    /// Ends what goes with the present settings: files that are read again, looks for loops.
    tasks: Option<DropGuard>,
    /// Loops that were found.
    loops: (mpsc::Sender<String>, mpsc::Receiver<String>),
}

/// Names that are kept up to date for as long as this is kept.
struct Followed {
    names: Arc<Names>,
    _stop: DropGuard,
}

impl Server {
    fn new(cluster: Option<Cluster>, metrics: Metrics, account: &Account) -> Result<Server, Error> {
        Ok(Server {
            cluster,
            settings: Settings::default(),
            status: Status::new(metrics.clone()),
            logger: Logger::new().map_err(|error| Error::System { what: "starting a thread", error })?,
            metrics,
            pages: Pages::default(),
            bounds: Bounds::new(account),
            listeners: BTreeMap::new(),
            names: Vec::new(),
            tasks: None,
            loops: mpsc::channel(1),
        })
    }

    /// Serves as these settings say, in the place of those before. If they cannot be had, nothing changes.
    async fn apply(&mut self, settings: Settings) -> Result<(), Error> {
        let mut fresh = Vec::new();
        let blocks = build::blocks(&settings, &self.metrics, &self.bounds, |wanted| self.names_of(wanted, &mut fresh))?;
        let (routers, opened) = self.open(&settings, &blocks)?;
        // Who asks whether we are ready is told from the beginning.
        self.status.watch(blocks.names.clone(), &settings);
        self.pages.serve(&self.status, &settings);
        // What is new is waited for a little: an answer is better than a failure.
        for followed in &fresh {
            followed.names.wait(followed.names.wanted.settings.startup_timeout).await;
        }
        self.listeners.extend(opened);
        self.take(settings, blocks, routers, fresh).await
    }

    /// Names that are kept already, or new ones.
    fn names_of(&self, wanted: Wanted, fresh: &mut Vec<Followed>) -> Result<Arc<Names>, Error> {
        let same = |followed: &&Followed| followed.names.wanted == wanted;
        if let Some(followed) = self.names.iter().find(same).or_else(|| fresh.iter().find(same)) {
            return Ok(followed.names.clone());
        }
        let cluster = self.cluster.clone().ok_or(Error::NoCluster)?;
        let (names, stop) = (Arc::new(Names::new(wanted)), CancellationToken::new());
        let (following, metrics, stopped) = (names.clone(), self.metrics.clone(), stop.clone());
        tokio::spawn(async move { stopped.run_until_cancelled(follow(following, cluster, metrics)).await });
        fresh.push(Followed { names: names.clone(), _stop: stop.drop_guard() });
        Ok(names)
    }

    /// Opens the sockets that are not open yet.
    #[expect(clippy::type_complexity, reason = "two maps by address")]
    fn open(
        &self,
        settings: &Settings,
        blocks: &Blocks,
    ) -> Result<(BTreeMap<SocketAddr, Arc<Router>>, BTreeMap<SocketAddr, Listener>), Error> {
        let (mut routers, mut opened) = (BTreeMap::new(), BTreeMap::new());
        let sockets = build::sockets(settings);
        for (address, zones) in &blocks.places {
            let server = build::label(*address);
            let router = Arc::new(Router::new(&server, zones.iter().cloned(), &self.metrics, &self.logger));
            if !self.listeners.contains_key(address) {
                match Listener::open(*address, sockets, router.clone()) {
                    Ok(listener) => drop(opened.insert(*address, listener)),
                    // A machine without IPv6 has the other.
                    Err(error) if address.is_ipv6() && address.ip().is_unspecified() => {
                        tracing::debug!(%address, %error, "no IPv6");
                    }
                    Err(error) => return Err(Error::Listen { address: *address, error }),
                }
            }
            routers.insert(*address, router);
        }
        Ok((routers, opened))
    }

    /// Lets new blocks answer, and ends what is not needed any more.
    async fn take(
        &mut self,
        settings: Settings,
        blocks: Blocks,
        routers: BTreeMap<SocketAddr, Arc<Router>>,
        fresh: Vec<Followed>,
    ) -> Result<(), Error> {
        for (address, router) in &routers {
            let Some(listener) = self.listeners.get_mut(address) else { continue };
            listener.place.set(router.clone());
            listener.start(&self.bounds).map_err(|error| Error::System { what: "starting a thread", error })?;
        }
        let gone: Vec<SocketAddr> =
            self.listeners.keys().filter(|address| !routers.contains_key(address)).copied().collect();
        for address in gone {
            if let Some(listener) = self.listeners.remove(&address) {
                listener.close().await;
            }
        }
        self.names.extend(fresh);
        self.names.retain(|followed| blocks.names.iter().any(|names| Arc::ptr_eq(names, &followed.names)));
        self.metrics.look_at(blocks.caches(), blocks.names.iter().map(Arc::downgrade).collect());
        for (address, zones) in &blocks.places {
            for (zone, chain) in zones.iter().filter(|(_, chain)| chain.is_counted()) {
                self.metrics.enabled(&build::label(*address), &zone.to_string(), &chain.plugins.enabled());
            }
        }
        self.start_tasks(&blocks);
        self.settings = settings;
        Ok(())
    }

    fn start_tasks(&mut self, blocks: &Blocks) {
        let stop = CancellationToken::new();
        self.tasks = Some(stop.clone().drop_guard());
        for hosts in &blocks.hosts {
            let (stop, read) = (stop.clone(), hosts.clone().keep_read(self.metrics.clone()));
            tokio::spawn(async move { stop.run_until_cancelled(read).await });
        }
        for (looping, at) in &blocks.loops {
            let Some(address) = self.listeners.get(at).map(|listener| reachable(listener.place.address)) else {
                continue;
            };
            let (stop, watch, found) = (stop.clone(), looping.clone().watch(address), self.loops.0.clone());
            tokio::spawn(async move {
                if let Some(why) = stop.run_until_cancelled(watch).await {
                    let _ = found.send(why).await;
                }
            });
        }
    }

    /// Serves until told to stop, and then for as long as `lameduck` says.
    async fn serve(mut self, corefile: Option<Corefile>, stop: CancellationToken) -> Result<(), Error> {
        for address in self.listeners.values().map(|listener| listener.place.address) {
            tracing::info!(%address, "answering questions");
        }
        let mut complaint = None;
        loop {
            let reload = corefile.as_ref().and_then(|_| self.settings.reload());
            tokio::select! {
                () = stop.cancelled() => break,
                Some(why) = self.loops.1.recv() => return Err(Error::Loop(why)),
                () = pause(reload) => {}
            }
            if let Some(corefile) = &corefile {
                self.reload(corefile, &mut complaint).await;
            }
        }
        self.status.leave();
        let lameduck = self.settings.lameduck();
        if !lameduck.is_zero() {
            tracing::info!(?lameduck, "leaving");
            tokio::time::sleep(lameduck).await;
        }
        for (_, listener) in std::mem::take(&mut self.listeners) {
            listener.close().await;
        }
        Ok(())
    }

    /// Takes a Corefile over that has changed. What is wrong with it is told once.
    async fn reload(&mut self, corefile: &Corefile, complaint: &mut Option<String>) {
        let applied = match corefile.read() {
            Ok(settings) if settings == self.settings => Ok(false),
            Ok(settings) => self.apply(settings).await.map(|()| true),
            Err(error) => Err(error),
        };
        match applied {
            Ok(false) => *complaint = None,
            Ok(true) => {
                *complaint = None;
                tracing::info!(file = %corefile.path.display(), "the Corefile changed and is taken over");
            }
            Err(error) => {
                let why = error.to_string();
                if complaint.as_ref() != Some(&why) {
                    self.metrics.reload_failed();
                    tracing::error!("the Corefile changed and is not taken over; the one before counts: {why}");
                }
                *complaint = Some(why);
            }
        }
    }
}

/// The address at which we reach ourselves.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Until the Corefile is to be looked at again.
async fn pause(reload: Option<Reload>) {
    let Some(Reload { interval, jitter }) = reload else { return std::future::pending().await };
    // Not all servers of a cluster at once.
    let shift = jitter.mul_f64(fastrand::f64() * 2.0);
    tokio::time::sleep((interval + shift).saturating_sub(jitter).max(Duration::from_millis(100))).await;
}
