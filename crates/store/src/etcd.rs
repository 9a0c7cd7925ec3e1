//! A store in an etcd cluster, laid out so that kube-apiserver can use the same one.
//!
//! Reads and writes go straight to etcd. One watch of everything fills the windows that our watchers share.

mod client;
mod compaction;
mod feed;
mod follow;
mod keys;
mod messages;
mod monitor;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tonic::{Code, Status};

use crate::window::{Keep, Past, Step, Windows};
use crate::{Backend, Draft, Entry, Error, Guard, Outcome, Page, Range, Revision, SharedStore, Txn, Watch, Write};
use client::{Answer, Client, Repeat};
use feed::Feed;
pub use keys::Decode;
use keys::{Reader, revision, wire};
use messages::{
    Compare, CompareTarget, CompareValue, DeleteRangeRequest, KeyValue, LeaseGrantRequest, LeaseGrantResponse,
    PutRequest, RangeRequest, RangeResponse, Request, RequestOp, Response, StatusRequest, StatusResponse, TxnRequest,
    TxnResponse,
};

const RANGE: &str = "/etcdserverpb.KV/Range";
const TXN: &str = "/etcdserverpb.KV/Txn";
const LEASE_GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";

/// Keys in one answer of etcd. A list of more is put together of several, all of one revision: neither side has to hold
/// the whole list as one message.
const PAGE: usize = 2_000;

/// Where etcd is and how to speak with it.
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// `http://HOST:PORT` or `https://HOST:PORT` of some or all members.
    pub endpoints: Vec<String>,
    /// What keys begin with in etcd; `/registry` as a rule.
    pub prefix: String,
    /// Certificates for `https`.
    pub tls: EtcdTls,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub request_timeout: Duration,
}

/// Certificates, as PEM text.
#[derive(Debug, Clone, Default)]
pub struct EtcdTls {
    /// Who vouches for the members.
    pub ca: Option<Vec<u8>>,
    /// Who we are: certificate and private key.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl Default for EtcdOptions {
    fn default() -> EtcdOptions {
        EtcdOptions {
            endpoints: Vec::new(),
            prefix: "/registry".into(),
            tls: EtcdTls::default(),
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(10),
        }
    }
}

/// Keeps objects in etcd.
#[derive(Debug)]
pub struct Etcd {
    shared: Arc<Shared>,
    /// The tasks that follow etcd and check its members. They end with this value.
    _tasks: JoinSet<()>,
}

/// What the store and the task that follows etcd both need.
#[derive(Debug)]
struct Shared {
    client: Client,
    reader: Reader,
    windows: Windows,
    /// The newest compaction we have heard of; etcd does not say which revision it was when it refuses an older one.
    compacted: AtomicU64,
    /// The newest revision anybody was told. The watch may lag behind it; an etcd that is behind it was put back.
    told: AtomicU64,
}

impl Etcd {
    /// Asks etcd where it is, and follows it from there on. To be called within a tokio runtime.
    pub async fn connect(options: &EtcdOptions, decode: Decode) -> Result<Etcd, Error> {
        let client = Client::new(options)?;
        let reader = Reader::new(&options.prefix, decode);
        let mut tasks = JoinSet::new();
        if client.members() > 1 {
            tasks.spawn(monitor::run(client.clone(), options.endpoints.clone(), any_key(&reader)));
        }
        let start = current(&client, &reader).await?;
        let windows = Windows::new(start, Keep::Watched);
        let shared =
            Arc::new(Shared { client, reader, windows, compacted: AtomicU64::new(0), told: AtomicU64::new(start.0) });
        tasks.spawn(follow::follow(shared.clone(), start));
        Ok(Etcd { shared, _tasks: tasks })
    }
}

impl Backend for Etcd {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Entry>>, Error>> {
        self.shared.get(key).boxed()
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>> {
        async move { self.shared.page(&range).await }.boxed()
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>> {
        async move { self.shared.commit(&txn).await }.boxed()
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Watch, Error>> {
        self.shared.clone().watch(prefix, after).boxed()
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }

    fn revision(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        async { self.shared.revision().await.inspect(|revision| self.shared.tell(*revision)) }.boxed()
    }
}

impl SharedStore for Etcd {
    fn put_for<'a>(&'a self, key: &'a str, draft: Draft, ttl: Duration) -> BoxFuture<'a, Result<(), Error>> {
        async move { self.shared.put_for(key, draft, ttl).await }.boxed()
    }
}

impl Shared {
    async fn get(&self, key: &str) -> Result<Option<Arc<Entry>>, Error> {
        let request = RangeRequest { key: self.reader.outside(key), ..RangeRequest::default() };
        let answer = self.range(&request).await?;
        answer.kvs.first().map(|kv| self.reader.entry(kv).map(Arc::new)).transpose()
    }

    async fn page(&self, range: &Range) -> Result<Page, Error> {
        let limit = if range.limit == 0 { usize::MAX } else { range.limit };
        let mut page = Page { entries: Vec::new(), revision: range.at.unwrap_or_default(), remaining: 0 };
        let mut span = self.reader.span(&range.prefix, range.after.as_deref());
        loop {
            let request = RangeRequest {
                key: span.start.clone(),
                range_end: span.end.clone(),
                limit: (limit - page.entries.len()).min(PAGE) as i64,
                // 0 means now, also to etcd; later parts show what the first showed.
                revision: wire(page.revision),
                ..RangeRequest::default()
            };
            let answer = self.range(&request).await?;
            if page.revision == Revision(0) {
                page.revision = answer.header.map(|header| revision(header.revision)).unwrap_or_default();
                self.tell(page.revision);
            }
            for kv in &answer.kvs {
                page.entries.push(Arc::new(self.reader.entry(kv)?));
            }
            page.remaining = usize::try_from(answer.count).unwrap_or(0).saturating_sub(answer.kvs.len());
            match answer.kvs.last() {
                Some(last) if answer.more && page.entries.len() < limit => {
                    span.start = [&last.key[..], &[0]].concat().into();
                }
                _ => return Ok(page),
            }
        }
    }

    async fn commit(&self, txn: &Txn) -> Result<Outcome, Error> {
        let repeat = if txn.applies_once() { Repeat::Always } else { Repeat::IfUnsent };
        let called = self.client.call_counted::<_, TxnResponse>(TXN, &self.request(txn), repeat).await;
        let Answer { message: answer, repeated } = called.map_err(|status| unavailable(&status))?;
        if answer.succeeded {
            let done = answer.header.map(|header| revision(header.revision)).unwrap_or_default();
            self.tell(done);
            return Ok(Outcome::Done(done));
        }
        if repeated {
            // The first request may have been applied, and be the very reason why the second one
            // was refused.
            let unknown = "etcd: the answer to a write was lost; the write may have happened";
            let written = self.written(txn).await.ok_or_else(|| Error::Unavailable(unknown.into()))?;
            self.tell(written);
            return Ok(Outcome::Done(written));
        }
        let found = answer.responses.iter().map(|op| match &op.response {
            Some(Response::Range(range)) => range.kvs.first(),
            None => None,
        });
        let holds = |(guard, kv): (&Guard, Option<&KeyValue>)| guard.holds(kv.map(|kv| revision(kv.mod_revision)));
        let refused = txn.guards.iter().zip(found).position(|pair| !holds(pair));
        refused.map(Outcome::Refused).ok_or_else(|| Error::Unavailable("etcd refused without a reason".into()))
    }

    /// Returns the revision at which etcd holds exactly what a transaction writes, if it does and the
    /// revision is newer than those of the guards. Deletes alone show nothing: another client may
    /// have deleted the keys.
    async fn written(&self, txn: &Txn) -> Option<Revision> {
        let expected = txn.writes.iter().map(|write| match write {
            Write::Put(key, draft) => (self.reader.outside(key), Some(&draft.json)),
            Write::Delete(key) => (self.reader.outside(key), None),
        });
        let expected: Vec<_> = expected.collect();
        let read = |key: &Bytes| RequestOp {
            request: Some(Request::Range(RangeRequest { key: key.clone(), ..RangeRequest::default() })),
        };
        // One transaction, so that all keys are read at the same revision.
        let request =
            TxnRequest { success: expected.iter().map(|(key, _)| read(key)).collect(), ..TxnRequest::default() };
        let answer: TxnResponse = self.client.call(TXN, &request, Repeat::Always).await.ok()?;
        let mut written = None;
        for (place, (_, value)) in expected.iter().enumerate() {
            let Some(Response::Range(range)) = &answer.responses.get(place)?.response else { return None };
            match (range.kvs.first(), value) {
                (None, None) => {}
                // All writes of a transaction have the same revision.
                (Some(kv), Some(value)) if kv.value == **value && written.is_none_or(|at| at == kv.mod_revision) => {
                    written = Some(kv.mod_revision);
                }
                _ => return None,
            }
        }
        let written = revision(written?);
        let newer = |guard: &Guard| !matches!(guard, Guard::At(_, revision) if *revision >= written);
        txn.guards.iter().all(newer).then_some(written)
    }

    async fn put_for(&self, key: &str, draft: Draft, ttl: Duration) -> Result<(), Error> {
        // A lease for each write, as kube-apiserver has it for values that live so short. Leases
        // that no key has any more end by themselves.
        let ask = LeaseGrantRequest { ttl: i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX) };
        let granted = self.client.call::<_, LeaseGrantResponse>(LEASE_GRANT, &ask, Repeat::Always).await;
        let lease = granted.map_err(|status| unavailable(&status))?.id;
        let put = PutRequest { key: self.reader.outside(key), value: draft.json, lease };
        let success = vec![RequestOp { request: Some(Request::Put(put)) }];
        let request = TxnRequest { success, ..TxnRequest::default() };
        // Written twice, it says the same, and ends with the same lease.
        let written = self.client.call::<_, TxnResponse>(TXN, &request, Repeat::Always).await;
        written.map(drop).map_err(|status| unavailable(&status))
    }

    /// The writes if all guards hold; otherwise a look at what the guards are about, to tell which did not.
    fn request(&self, txn: &Txn) -> TxnRequest {
        let compare = |guard: &Guard| Compare {
            result: 0,
            target: CompareTarget::ModRevision as i32,
            key: self.reader.outside(guard.key()),
            value: Some(CompareValue::ModRevision(match guard {
                Guard::Absent(_) => 0,
                Guard::At(_, revision) => wire(*revision),
            })),
        };
        let look = |guard: &Guard| {
            let key = self.reader.outside(guard.key());
            Request::Range(RangeRequest { key, keys_only: true, ..RangeRequest::default() })
        };
        let write = |write: &Write| match write {
            Write::Put(key, draft) => {
                Request::Put(PutRequest { key: self.reader.outside(key), value: draft.json.clone(), lease: 0 })
            }
            Write::Delete(key) => Request::DeleteRange(DeleteRangeRequest { key: self.reader.outside(key) }),
        };
        let op = |request| RequestOp { request: Some(request) };
        TxnRequest {
            compare: txn.guards.iter().map(compare).collect(),
            success: txn.writes.iter().map(write).map(op).collect(),
            failure: txn.guards.iter().map(look).map(op).collect(),
        }
    }

    /// From the window if it reaches back far enough, otherwise from etcd's own history until the window does.
    async fn watch(self: Arc<Shared>, prefix: &str, after: Revision) -> Result<Watch, Error> {
        match self.windows.watch(prefix, after) {
            Err(Error::Compacted { .. }) => {}
            other => return other,
        }
        // Asked for first because a watch tells of a compaction only once it runs. 0 would mean now.
        let start = Revision(after.0.max(1));
        self.range(&RangeRequest { revision: wire(start), ..any_key(&self.reader) }).await?;
        let feed = Feed::open(&self.client, self.reader.span(prefix, None), after).await?;
        if self.progress_can_be_asked().await {
            feed.ask_progress();
        }
        let past = past(feed, self.reader.clone());
        self.windows.watch_from(prefix, after, past)
    }

    /// Remembers a revision that somebody is told.
    fn tell(&self, revision: Revision) {
        self.told.fetch_max(revision.0, Ordering::Relaxed);
    }

    async fn revision(&self) -> Result<Revision, Error> {
        current(&self.client, &self.reader).await
    }

    async fn range(&self, request: &RangeRequest) -> Result<RangeResponse, Error> {
        let status = match self.client.call(RANGE, request, Repeat::Always).await {
            Ok(answer) => return Ok(answer),
            Err(status) => status,
        };
        let requested = revision(request.revision);
        if status.code() != Code::OutOfRange {
            return Err(unavailable(&status));
        }
        if status.message().contains("future") {
            return Err(Error::Future { requested, current: self.revision().await? });
        }
        let oldest = Revision(self.compacted.load(Ordering::Relaxed)).max(Revision(requested.0 + 1));
        Err(Error::Compacted { requested, oldest })
    }

    fn note_compacted(&self, upto: Revision) {
        self.compacted.fetch_max(upto.0, Ordering::Relaxed);
    }

    /// Whether the member answers questions for progress in order with its events. Older ones may answer too early
    /// (etcd issue 15220); kube-apiserver draws the line at the same versions.
    async fn progress_can_be_asked(&self) -> bool {
        let path = "/etcdserverpb.Maintenance/Status";
        match self.client.call::<_, StatusResponse>(path, &StatusRequest {}, Repeat::Always).await {
            Ok(status) => progress_works(&status.version),
            Err(_) => false,
        }
    }
}

/// A read that costs little and needs the majority of etcd's members. kube-apiserver checks etcd
/// with the same key.
fn any_key(reader: &Reader) -> RangeRequest {
    RangeRequest { key: reader.outside("/registry/health"), count_only: true, ..RangeRequest::default() }
}

async fn current(client: &Client, reader: &Reader) -> Result<Revision, Error> {
    let answer: RangeResponse =
        client.call(RANGE, &any_key(reader), Repeat::Always).await.map_err(|status| unavailable(&status))?;
    Ok(answer.header.map(|header| revision(header.revision)).unwrap_or_default())
}

fn past(feed: Feed, reader: Reader) -> Past {
    let steps = futures_util::stream::unfold((feed, reader), async |(mut feed, reader)| {
        let step = match feed.next().await {
            Ok(told) => {
                let events: Result<_, _> = told.events.iter().map(|event| reader.event(event)).collect();
                events.map(|events| Step { events, upto: told.upto })
            }
            Err(error) => Err(error),
        };
        Some((step, (feed, reader)))
    });
    Box::pin(steps)
}

fn progress_works(version: &str) -> bool {
    let mut numbers = version.split(['.', '-', '+']).map(|part| part.parse::<u32>().unwrap_or(0));
    let mut number = || numbers.next().unwrap_or(0);
    match (number(), number(), number()) {
        (3, 4, patch) => patch >= 31,
        (3, 5, patch) => patch >= 13,
        (major, minor, _) => (major, minor) >= (3, 6),
    }
}

fn unavailable(status: &Status) -> Error {
    let mut text = format!("etcd: {}", status.message());
    if let Some(cause) = std::error::Error::source(status) {
        text = format!("{text}: {}", client::causes(cause));
    }
    Error::Unavailable(text)
}
