//! What the page asks for: Services at a glance and one by one, traffic, names, packets, Nodes, load balancers. Answered by the
//! server's process from what it follows anyway, as JSON.

use std::sync::Arc;

use bytes::Bytes;
use fairlead_api::source::Key;
use fairlead_api::{Failure, Kind, kinds};
use fairlead_cluster::Cluster;
use fairlead_proxy::{Mode, Settings};
use fairlead_server::Server;
use fairlead_server::auth::User;
use fairlead_server::pages::{Answer, Data, Pages, Question, nothing};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::history::answer as history;
use crate::trace::part::part;
use crate::{explain, lb, trace};
use board::Board;

pub(crate) mod board;
mod dns;
mod files;
pub(crate) mod link;
mod measure;
mod nodes;
mod service;
mod stream;
#[cfg(test)]
mod tests;
mod traffic;

/// Questions for which much has to be read: so many at a time.
const COSTLY: usize = 4;

/// The parts of this process that the page looks at.
#[derive(Clone, Default)]
pub(crate) struct Here {
    /// The node proxy.
    pub(crate) proxy: fairlead_proxy::View,
    /// What the DNS server of this machine counts.
    pub(crate) names: fairlead_dns::Metrics,
    /// What the controllers count.
    pub(crate) control: fairlead_control::Metrics,
    /// What is counted of the Pods of this machine.
    pub(crate) pods: fairlead_pods::Metrics,
    /// The past, if it is kept.
    pub(crate) history: Option<fairlead_history::History>,
    /// Budgets of the process.
    pub(crate) account: fairlead_runtime::Account,
}

/// Answers what the page asks.
pub(crate) struct Ui {
    cluster: Cluster,
    here: Here,
    /// What this machine is in the cluster, if it is a Node.
    node: Option<Arc<explain::Here>>,
    /// Where the load balancers of this machine say how they do, if there are any.
    balancers: Option<String>,
    dns: dns::Resolvers,
    board: Board,
    streams: stream::Places,
    costly: Arc<Semaphore>,
    stop: CancellationToken,
}

/// The door through which a server's own process looks at its objects.
pub(crate) fn door(server: &Server) -> Cluster {
    let user = User {
        name: "system:fairlead-ui".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
        ..User::default()
    };
    let local = server.local(user);
    Cluster::new(local.clone(), Arc::new(local))
}

/// Shows the page beside the API of a server.
pub(crate) fn show(server: &Server, door: &Cluster, config: &Config, here: Here, stop: &CancellationToken) {
    let cluster = door.managed_by("fairlead-ui");
    let ui = Ui {
        board: Board::new(&cluster, stop),
        cluster,
        here,
        node: explain::Here::of(config).map(Arc::new),
        balancers: config.balancer.as_ref().and_then(|settings| settings.page).map(|page| page.to_string()),
        dns: dns::Resolvers::of(config),
        streams: stream::Places::default(),
        costly: Arc::new(Semaphore::new(COSTLY)),
        stop: stop.clone(),
    };
    server.show(Pages::new(files::all(), Arc::new(ui)));
}

impl Data for Ui {
    fn prepare(&self) {
        self.board.begin();
    }

    fn made_of(&self, path: &str) -> Option<&'static [&'static Kind]> {
        made_of(path)
    }

    fn answer<'a>(&'a self, question: &'a Question<'a>) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let parts: Vec<&str> = question.path.split('/').collect();
            match parts[..] {
                ["services"] if question.flag("watch") => self.watch(question.text("since")).await,
                ["services"] => Ok(Answer::Json(self.board.open().await?.rows().list())),
                ["services", namespace, name] => service::answer(self, namespace, name).await.map(made),
                ["traffic"] => traffic::answer(self).await.map(made),
                ["nodes"] => nodes::answer(self).await.map(made),
                ["balancers"] => self.balancers().await.map(made),
                ["explain"] => self.explain(question).await.map(made),
                ["trace"] => self.trace(question).await.map(made),
                ["dns"] => dns::answer(self, question).await.map(made),
                ["history"] => history::timeline(self.here.history.as_ref(), question).await.map(made),
                ["history", "at"] => history::moment(self.here.history.as_ref(), question).await.map(made),
                _ => Err(nothing(question.path)),
            }
        })
    }

    fn domain(&self) -> &str {
        self.dns.domain()
    }

    fn measured(&self) -> BoxFuture<'_, String> {
        Box::pin(measure::text(self))
    }
}

impl Ui {
    /// What `fairlead explain -o json` prints, as this machine sees it.
    async fn explain(&self, question: &Question<'_>) -> Result<Value, Failure> {
        let (namespace, name) = (or(question.text("namespace"), "default"), question.text("name"));
        if name.is_empty() {
            return Err(Failure::bad_request("name: say which Service"));
        }
        let (from, port, live) = (question.text("from"), question.text("port"), question.flag("live"));
        let ask = explain::Ask::read(Key::new(namespace, name), from, port, live).map_err(Failure::bad_request)?;
        let place = self.place().await?;
        let here = self.node.clone().ok_or_else(|| {
            "this server runs on no Node: `fairlead explain` on the client's Node sees sockets and rules".to_owned()
        });
        // A copy of what is there costs less than to read it all, and nobody waits for who looks at machines.
        let objects = self.board.open().await?.objects().clone();
        if let Some(why) = explain::no_client(&self.cluster, &objects, &ask.question.from).await {
            return Err(absent(&format!("from: {why}")));
        }
        let cluster = self.cluster.clone();
        let judged = async move {
            let here = here.as_deref().map_err(Clone::clone);
            explain::judge(&cluster, &objects, &ask, here).await.to_json()
        };
        to_the_end(place, judged).await
    }

    /// What `fairlead trace -o json` prints, of what the board knows: only the objects the answer depends on are looked at.
    async fn trace(&self, question: &Question<'_>) -> Result<Value, Failure> {
        let words = (question.text("from"), question.text("to"), question.text("namespace"));
        let asked = trace::asked(self.here.proxy.mode().unwrap_or(Mode::Nftables), words)?;
        let usual = Settings::default();
        let settings = self.node.as_ref().map_or(&usual, |here| &here.proxy);
        let _place = self.place().await?;
        let ranges = fairlead_proxy::trace::ranges(&self.cluster).await;
        let board = self.board.open().await?;
        let objects = part(&board.objects(), &asked.from, std::slice::from_ref(&asked.to), ranges);
        trace::told(objects, settings, &asked)
    }

    /// Load balancers, and how those of this machine do.
    async fn balancers(&self) -> Result<Value, Failure> {
        let Some(page) = &self.balancers else {
            return Err(absent(
                "no load balancers run in this process: `fairlead up` runs them, or `fairlead balancer`",
            ));
        };
        let _place = self.place().await?;
        let told = lb::told(self.cluster.clone(), page).await;
        let (items, unknown) = told.map_err(|error| Failure::internal(format!("{error:#}")))?;
        Ok(json!({"items": items, "unknown": unknown}))
    }

    /// A place for a question for which much has to be read.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let place = self.costly.clone().acquire_owned().await;
        place.map_err(|_| Failure::new(503, "ServiceUnavailable", "the program ends"))
    }
}

/// What the board is made of, and so are explanations.
const BOARD: &[&Kind] = &[
    &kinds::SERVICE,
    &kinds::ENDPOINT_SLICE,
    &kinds::POD,
    &kinds::ENDPOINTS,
    &kinds::NODE,
    &kinds::NAMESPACE,
    &kinds::EVENT,
];

/// What the node proxy counts by.
const TRAFFIC: &[&Kind] = &[&kinds::SERVICE, &kinds::ENDPOINT_SLICE];
/// Nodes, how many Pods they have, and for which addresses of Services they answer.
const NODES: &[&Kind] = &[&kinds::NODE, &kinds::POD, &kinds::SERVICE];
/// Load balancers, their backends, and what was refused of them.
const BALANCERS: &[&Kind] = &[&kinds::SERVICE, &kinds::ENDPOINT_SLICE, &kinds::EVENT];
/// What the way of a packet depends on.
const TRACE: &[&Kind] = &[&kinds::SERVICE, &kinds::ENDPOINT_SLICE, &kinds::POD, &kinds::NODE, &kinds::SERVICE_CIDR];
/// What names depend on, and who asks for them.
const NAMES: &[&Kind] = &[&kinds::SERVICE, &kinds::ENDPOINT_SLICE, &kinds::POD, &kinds::NAMESPACE];
/// What the history follows.
const PAST: &[&Kind] = &[
    &kinds::SERVICE,
    &kinds::ENDPOINT_SLICE,
    &kinds::ENDPOINTS,
    &kinds::POD,
    &kinds::NODE,
    &kinds::SERVICE_CIDR,
    &kinds::EVENT,
];

/// What answers are made of. What is not here cannot be asked.
fn made_of(path: &str) -> Option<&'static [&'static Kind]> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["services"] | ["services", _, _] | ["explain"] => Some(BOARD),
        ["traffic"] => Some(TRAFFIC),
        ["nodes"] => Some(NODES),
        ["balancers"] => Some(BALANCERS),
        ["trace"] => Some(TRACE),
        ["dns"] => Some(NAMES),
        ["history"] | ["history", "at"] => Some(PAST),
        _ => None,
    }
}

/// Does what takes a place until it is done: it goes on even if nobody waits for it any more, and so long the place is taken.
async fn to_the_end<T: Send + 'static>(
    place: OwnedSemaphorePermit,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Failure> {
    let worked = tokio::spawn(async move {
        let done = work.await;
        drop(place);
        done
    });
    worked.await.map_err(|error| Failure::internal(error.to_string()))
}

/// An answer that is made for one question.
fn made(value: Value) -> Answer {
    Answer::Json(Bytes::from(value.to_string()))
}

/// The same of a value that is written often.
fn written(value: &impl Serialize) -> Bytes {
    Bytes::from(serde_json::to_vec(value).expect("keys are texts, and nothing else can fail"))
}

/// What was said, or else what is usual.
fn or<'a>(said: &'a str, usual: &'a str) -> &'a str {
    if said.is_empty() { usual } else { said }
}

/// 404 for what only a part of the program knows that does not run here.
fn absent(what: &str) -> Failure {
    Failure::new(404, "NotFound", what)
}
