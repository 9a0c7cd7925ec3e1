//! What is done with a question: the plugins of a server block, one after the other.
//!
//! The order is CoreDNS', whatever the order in the Corefile: rewrite, autopath, cache, template, hosts, kubernetes, loop,
//! forward. Only answers of others are cached: our own are as quick, and right.

use std::sync::Arc;
use std::time::Instant;

use fairlead_zone::message::{self, Head, Message, Outcome, Query, Rcode, Record};
use fairlead_zone::{Name, Searched};
use futures_util::FutureExt;
use tokio::sync::Semaphore;

use crate::ask::{Ask, DEPTH, Reply};
use crate::cache::{Cache, Hit};
use crate::forward::{Asked, Forward};
use crate::hosts::{self, Hosts};
use crate::log::{Logger, Told};
use crate::looping::Looping;
use crate::names::{Held, Names};
use crate::outstanding::{self, Outstanding};
use crate::router::{Came, Router};
use crate::settings::{Errors, Plugins, Search};
use crate::{rewrite, template, words};

mod path;

/// A server block, ready to be asked.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) plugins: Plugins,
    /// As metrics name it.
    pub(crate) server: String,
    pub(crate) names: Option<Arc<Names>>,
    pub(crate) hosts: Option<Arc<Hosts>>,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) forwards: Vec<Forward>,
    pub(crate) looping: Option<Arc<Looping>>,
    /// The search path of the machine, or of the file `autopath` names.
    pub(crate) search: Vec<Name>,
    /// Questions under way to upstreams.
    pub(crate) outstanding: Arc<Outstanding>,
    /// Places for answers that are fetched again while no client waits.
    pub(crate) refreshes: Arc<Semaphore>,
}

/// What is done with a question at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quick {
    /// The reply is written, by this plugin.
    Answered(&'static str),
    /// It takes longer.
    Later,
}

/// What this server knows of a question itself.
enum Local {
    Reply(Reply),
    /// It has another name, which others know; these records say so.
    Alias(Vec<Record>, Name),
    Pass,
}

impl Chain {
    /// Whether questions are counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.plugins.counted || self.plugins.prometheus.is_some()
    }

    /// Whether addresses take turns.
    pub(crate) fn is_balanced(&self) -> bool {
        self.plugins.loadbalance
    }

    /// What is told of errors, if anything.
    pub(crate) fn errors(&self) -> Option<&Errors> {
        self.plugins.errors.as_ref()
    }

    /// Tells of an answer.
    pub(crate) fn tell(&self, logger: &Logger, told: &Told<'_>) {
        self.plugins.log.iter().for_each(|log| logger.told(log, told));
    }

    /// Whether every question takes the long way.
    fn is_slow(&self) -> bool {
        let plugins = &self.plugins;
        let path = plugins.autopath.as_ref().is_some_and(|autopath| autopath.search != Search::Kubernetes);
        path || !plugins.log.is_empty() || !plugins.rewrite.is_empty() || !plugins.template.is_empty()
    }

    /// Answers what needs nobody else.
    pub(crate) fn quick<'a>(
        &'a self,
        query: &Query<'_>,
        came: &Came<'_>,
        turn: u32,
        held: &mut Held<'a>,
        out: &mut Vec<u8>,
    ) -> Quick {
        if self.is_slow() {
            return Quick::Later;
        }
        if let Some(hosts) = &self.hosts
            && hosts.concerns(&query.question.name(), query.question.rtype)
        {
            return Quick::Later;
        }
        if let Some(names) = &self.names {
            match self.of_names(names, query, (came, turn), held, out) {
                Some(quick) => return quick,
                None => out.clear(),
            }
        }
        self.of_cache(query, came, out)
    }

    /// What the cluster's names answer; `None`: others are to be asked.
    fn of_names<'a>(
        &'a self,
        names: &'a Names,
        query: &Query<'_>,
        (came, turn): (&Came<'_>, u32),
        held: &mut Held<'a>,
        out: &mut Vec<u8>,
    ) -> Option<Quick> {
        let limit = came.transport.limit(query);
        if !names.synced() {
            let name = query.question.name();
            let ours = names.wanted.settings.zones.iter().any(|zone| name.is_under(zone));
            return ours.then(|| {
                Reply::failed(Rcode::SERV_FAIL).write(query, limit, out);
                Quick::Answered("")
            });
        }
        let turn = if self.is_balanced() { turn } else { 0 };
        let namespace = self.plugins.autopath.as_ref().and_then(|_| names.namespace(came.from.ip()));
        let zone = held.zone(names);
        if let Some(namespace) = namespace {
            match zone.search(&query.question, &namespace, &self.search) {
                Searched::NotFirst => {}
                Searched::Elsewhere(_) => return Some(Quick::Later),
                Searched::Answer(answer) => {
                    message::write_answer(zone, query, &answer, turn, limit, out);
                    return Some(if out.is_empty() { Quick::Later } else { Quick::Answered("kubernetes") });
                }
            }
        }
        match message::reply(zone, query, turn, limit, out) {
            Outcome::Answered => Some(Quick::Answered("kubernetes")),
            Outcome::NameError(zone) => {
                let through = names.wanted.settings.fallthrough.through_in(zone, || query.question.name());
                (!through).then_some(Quick::Answered("kubernetes"))
            }
            Outcome::Alias(_) => Some(Quick::Later),
            Outcome::NotOurs => None,
        }
    }

    /// What the cache answers, or the fact that there is nobody to ask.
    fn of_cache(&self, query: &Query<'_>, came: &Came<'_>, out: &mut Vec<u8>) -> Quick {
        let limit = came.transport.limit(query);
        if self.forwards.is_empty() {
            Reply::failed(Rcode::SERV_FAIL).write(query, limit, out);
            return Quick::Answered("");
        }
        let Some(cache) = &self.cache else { return Quick::Later };
        let ask = Ask::of(query, came.from.ip(), came.transport);
        // What is not fresh is looked at again, with time to ask.
        if self.looping.is_some() && ask.rtype == words::HINFO || !cache.covers(&ask.name) {
            return Quick::Later;
        }
        match cache.peek(&ask, came.at) {
            Some(reply) => {
                reply.write(query, limit, out);
                Quick::Answered("cache")
            }
            None => Quick::Later,
        }
    }

    /// Answers a question, whoever must be asked.
    pub(crate) async fn answer(self: &Arc<Self>, router: &Router, ask: &Ask) -> Reply {
        if self.plugins.rewrite.is_empty() {
            return self.search(router, ask).await;
        }
        let mut asked = ask.clone();
        let Some(undos) = rewrite::rewrite(&self.plugins.rewrite, &mut asked) else {
            return Reply::failed(Rcode::SERV_FAIL);
        };
        let mut reply = self.search(router, &asked).await;
        rewrite::undo(&mut reply, &undos);
        reply
    }

    /// Answers one question, of a search path or not.
    pub(crate) async fn find(self: &Arc<Self>, router: &Router, ask: &Ask) -> Reply {
        match self.local(ask) {
            Local::Reply(mut reply) => {
                if let Some(ttl) = self.max_ttl(&ask.name) {
                    reply.cap(ttl);
                }
                reply
            }
            Local::Alias(records, target) => self.follow(router, ask, records, target).await,
            Local::Pass => self.remote(router, ask).await,
        }
    }

    /// What a cache in front would allow.
    fn max_ttl(&self, name: &Name) -> Option<u32> {
        let cache = self.plugins.cache.as_ref().filter(|cache| cache.zones.iter().any(|zone| name.is_under(zone)))?;
        Some(cache.success.max_ttl)
    }

    fn local(&self, ask: &Ask) -> Local {
        for one in &self.plugins.template {
            if let template::Made::Reply(reply) = template::answer(one, ask) {
                return Local::Reply(reply);
            }
        }
        if let Some(hosts) = &self.hosts
            && let hosts::Found::Reply(reply) = hosts.answer(ask)
        {
            return Local::Reply(reply);
        }
        match &self.names {
            Some(names) => local_names(names, ask),
            None => Local::Pass,
        }
    }

    /// Looks for what an alias stands for. Without an answer the alias itself is one.
    async fn follow(self: &Arc<Self>, router: &Router, ask: &Ask, records: Vec<Record>, target: Name) -> Reply {
        let mut reply = Reply {
            head: Head { authoritative: true, ..Head::default() },
            answer: records,
            plugin: "kubernetes",
            ..Reply::default()
        };
        if ask.depth < DEPTH {
            let ask = Ask { depth: ask.depth + 1, ..ask.with_name(target) };
            let found = router.resolve(&ask).await;
            if found.head.rcode == Rcode::NO_ERROR {
                reply.answer.extend(found.answer);
            }
        }
        if let Some(ttl) = self.max_ttl(&ask.name) {
            reply.cap(ttl);
        }
        reply
    }

    /// Asks others, unless the answer is known.
    async fn remote(self: &Arc<Self>, router: &Router, ask: &Ask) -> Reply {
        if let Some(looping) = &self.looping {
            looping.seen(ask);
        }
        let Some(cache) = self.cache.as_ref().filter(|cache| cache.covers(&ask.name)) else {
            return self.forward(router, ask).await;
        };
        match cache.get(ask, Instant::now()) {
            Some(Hit::Fresh(reply)) => reply,
            Some(Hit::Aging(reply)) => {
                cache.counts.prefetched();
                self.refresh(cache, ask);
                reply
            }
            Some(Hit::Stale(reply)) => self.stale(router, cache, ask, reply).await,
            None => {
                let mut reply = self.forward(router, ask).await;
                if reply.plugin == "forward" {
                    cache.put(ask, &mut reply, Instant::now());
                }
                reply
            }
        }
    }

    /// An answer that has expired: given at once and fetched again, or only given if there is no fresh one.
    async fn stale(self: &Arc<Self>, router: &Router, cache: &Arc<Cache>, ask: &Ask, reply: Reply) -> Reply {
        let Some(stale) = cache.stale().filter(|stale| stale.verify) else {
            cache.counts.served_stale();
            self.refresh(cache, ask);
            return reply;
        };
        let limit = if stale.limit.is_zero() { std::time::Duration::from_secs(30) } else { stale.limit };
        match tokio::time::timeout(limit, self.forward(router, ask)).await {
            Ok(mut fresh) if fresh.plugin == "forward" && fresh.head.rcode != Rcode::SERV_FAIL => {
                cache.put(ask, &mut fresh, Instant::now());
                fresh
            }
            _ => {
                cache.refresh_failed(ask);
                cache.counts.served_stale();
                reply
            }
        }
    }

    /// Fetches an answer again while no client waits, if not too many are fetched at the time.
    fn refresh(self: &Arc<Self>, cache: &Arc<Cache>, ask: &Ask) {
        let Ok(refreshing) = self.refreshes.clone().try_acquire_owned() else { return cache.refresh_failed(ask) };
        let (chain, cache, ask) = (self.clone(), cache.clone(), ask.clone());
        tokio::spawn(async move {
            match chain.ask_once(&ask).await {
                Ok(reply) if reply.head.rcode != Rcode::SERV_FAIL => {
                    cache.put(&ask, &mut Reply::clone(&reply), Instant::now());
                }
                _ => cache.refresh_failed(&ask),
            }
            drop(refreshing);
        });
    }

    /// Asks upstreams, unless an equal question is under way: then its answer is this one's, too.
    fn ask_once(self: &Arc<Self>, ask: &Ask) -> impl Future<Output = outstanding::Answer> + use<> {
        self.outstanding.join(ask, || {
            let (chain, ask) = (self.clone(), ask.clone());
            let exchange = async move {
                let answer = chain.ask_all(&ask).await;
                answer.map(Arc::new).map_err(|(rcode, why)| (rcode, why.into()))
            };
            exchange.boxed()
        })
    }

    async fn forward(self: &Arc<Self>, router: &Router, ask: &Ask) -> Reply {
        match self.ask_once(ask).await {
            Ok(reply) => Arc::unwrap_or_clone(reply),
            Err((rcode, why)) => {
                router.error(self, ask, rcode, &why);
                Reply::failed(rcode)
            }
        }
    }

    /// Asks each `forward` that is for the name, until one is content.
    async fn ask_all(&self, ask: &Ask) -> Result<Reply, (Rcode, String)> {
        let mut last = Err((Rcode::SERV_FAIL, "nobody is asked for this name".to_owned()));
        for forward in self.forwards.iter().filter(|forward| forward.covers(&ask.name)) {
            match forward.ask(ask).await {
                Asked::Reply(reply) => return Ok(reply),
                Asked::Next(reply) => last = Ok(reply),
                Asked::Failed(rcode, why) => return Err((rcode, why)),
            }
        }
        last
    }
}

/// What the cluster's names answer, as records.
fn local_names(names: &Names, ask: &Ask) -> Local {
    let settings = &names.wanted.settings;
    if !names.synced() {
        let ours = settings.zones.iter().any(|zone| ask.name.is_under(zone));
        return if ours { Local::Reply(Reply::failed(Rcode::SERV_FAIL)) } else { Local::Pass };
    }
    let zone = names.zone();
    let mut out = Vec::new();
    let looked = ask.with_query(|query| match message::reply(&zone, query, 0, message::MAX_MESSAGE, &mut out) {
        Outcome::Answered => None,
        Outcome::NameError(_) if settings.fallthrough.through(&ask.name) => Some(Local::Pass),
        Outcome::NameError(_) => None,
        Outcome::NotOurs => Some(Local::Pass),
        Outcome::Alias(alias) => Some(Local::Alias(alias.records(&ask.name), alias.target().clone())),
    });
    match looked {
        Some(Some(local)) => local,
        _ => Local::Reply(
            Message::parse(&out)
                .map_or_else(|_| Reply::failed(Rcode::SERV_FAIL), |message| Reply::of(message, "kubernetes")),
        ),
    }
}
