//! What machines may ask about this server: `/health`, `/ready` and `/metrics`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fairlead_monitor::Format;
use fairlead_monitor::http::{self as server, Answer, Question, answer, not_found};
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::metrics::Metrics;
use crate::names::Names;
use crate::settings::{Listen, Settings};

/// What is told. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Status {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    metrics: Metrics,
    /// Whether it is about to stop.
    leaving: AtomicBool,
    /// Whether it was ready once.
    was_ready: AtomicBool,
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    names: Vec<Arc<Names>>,
    /// Whether what was ready once may be unready again.
    continuously: bool,
}

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Page {
    Health,
    Ready,
    Metrics,
}

/// The servers that run. They end with it.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    running: BTreeMap<(Listen, Page), DropGuard>,
}

impl Status {
    pub(crate) fn new(metrics: Metrics) -> Status {
        let (leaving, was_ready) = (AtomicBool::new(false), AtomicBool::new(false));
        Status { shared: Arc::new(Shared { metrics, leaving, was_ready, watched: Mutex::default() }) }
    }

    /// What must be known to be ready.
    pub(crate) fn watch(&self, names: Vec<Arc<Names>>, settings: &Settings) {
        let mut ready = settings.servers.iter().filter_map(|server| server.plugins.ready);
        let continuously = ready.any(|ready| ready.continuously);
        *self.shared.watched.lock().unwrap_or_else(PoisonError::into_inner) = Watched { names, continuously };
    }

    /// It is about to stop: nobody should ask any more, and everybody is answered.
    pub(crate) fn leave(&self) {
        self.shared.leaving.store(true, Ordering::Relaxed);
    }

    fn ready(&self) -> Answer {
        let shared = &*self.shared;
        if shared.leaving.load(Ordering::Relaxed) {
            return answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, "Shutting down");
        }
        let watched = shared.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let known = watched.names.iter().all(|names| names.synced());
        let ready = known || (!watched.continuously && shared.was_ready.load(Ordering::Relaxed));
        shared.was_ready.fetch_or(ready, Ordering::Relaxed);
        match ready {
            true => answer(StatusCode::OK, TEXT, "OK"),
            false => answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, "kubernetes"),
        }
    }

    fn metrics(&self, question: &Question) -> Answer {
        let accept = question.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        let format = Format::wanted(accept);
        let mut answer = answer(StatusCode::OK, TEXT, self.shared.metrics.text(format));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.media()));
        answer
    }

    fn answer(&self, page: Page, question: &Question) -> Answer {
        match (page, question.path.as_str()) {
            (Page::Health, "/health") => answer(StatusCode::OK, TEXT, "OK"),
            (Page::Ready, "/ready") => self.ready(),
            (Page::Metrics, "/metrics") => self.metrics(question),
            _ => not_found(),
        }
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

impl Pages {
    /// Serves what settings ask for, and nothing else. A port that cannot be had is told, and is no reason to end.
    pub(crate) fn serve(&mut self, status: &Status, settings: &Settings) {
        let wanted: Vec<(Listen, Page)> = settings
            .servers
            .iter()
            .flat_map(|server| {
                let plugins = &server.plugins;
                let health = plugins.health.map(|health| (health.listen, Page::Health));
                let ready = plugins.ready.map(|ready| (ready.listen, Page::Ready));
                health.into_iter().chain(ready).chain(plugins.prometheus.map(|listen| (listen, Page::Metrics)))
            })
            .collect();
        self.running.retain(|page, _| wanted.contains(page));
        for page in wanted {
            self.running.entry(page).or_insert_with(|| start(status, page.0, page.1).drop_guard());
        }
    }
}

fn start(status: &Status, listen: Listen, page: Page) -> CancellationToken {
    let stop = CancellationToken::new();
    let everywhere = [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()];
    let addresses = listen.address.map_or(everywhere.to_vec(), |address| vec![address]);
    for address in addresses {
        let address = SocketAddr::new(address, listen.port);
        match server::listen(address) {
            Ok(listener) => {
                let status = status.clone();
                let reply = move |question: Question| {
                    let answer = status.answer(page, &question);
                    async move { answer }
                };
                tokio::spawn(server::serve(listener, stop.clone(), reply));
            }
            // A machine without IPv6 has the other.
            Err(error) if listen.address.is_none() && address.is_ipv6() => tracing::debug!(%address, %error, "no IPv6"),
            Err(error) => tracing::warn!(%address, ?page, "cannot listen: {error}"),
        }
    }
    stop
}
