//! One load balancer as this Node runs it: what its Service asked for when that last made sense, where it is, and its listeners.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairlead_api::ip;
use fairlead_api::source::Key;
use fairlead_api::view::{Protocol, Service};
use ipnet::IpNet;

use super::logs::AccessLogs;
use crate::backends::Backends;
use crate::config::{Around, Config, Reading};
use crate::engine::{Engine, ListenerKey};
use crate::log::Log;
use crate::serving::Serving;
use crate::spec::{self, Listener, Options, Path as Carrier, PortId, Refusal, Speaks, Spec};
use crate::tls::{ALPN_HTTP, Certificates, ClientTls, ServerTls, Wanted};

/// A load balancer.
#[derive(Debug)]
pub(super) struct Balancer {
    pub(super) key: Arc<Key>,
    pub(super) service: Arc<Service>,
    /// What it last asked for that makes sense; `None`: nothing yet.
    pub(super) spec: Option<Arc<Spec>>,
    /// Values of the Service that are not accepted, each with its effect on ports.
    pub(super) refused: Vec<String>,
    /// Ports of the Service that are not served, each with the reason.
    pub(super) unserved: BTreeMap<PortId, String>,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) listeners: BTreeMap<ListenerKey, Served>,
    /// Listeners that could not be opened, each with the reason.
    pub(super) failed: BTreeMap<ListenerKey, String>,
    pub(super) log: Option<Log>,
}

/// A listener of a load balancer that threads of ours serve.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) serving: Arc<Serving>,
    /// What is wrong with it.
    pub(super) problem: Option<String>,
}

/// What all of them share.
pub(super) struct Shared {
    pub(super) config: Arc<Config>,
    pub(super) options: Options,
    pub(super) certificates: Certificates,
    pub(super) trusted: Arc<[IpNet]>,
    /// Of certificates of backends, as PEM.
    pub(super) authority: Option<Vec<u8>>,
    pub(super) logs: AccessLogs,
}

impl Shared {
    pub(super) fn new(config: Arc<Config>, sctp: bool, spool: PathBuf) -> Shared {
        Shared {
            logs: AccessLogs::new(spool),
            options: config.options(sctp),
            certificates: config.certificates(),
            trusted: config.trusted_fronts.as_slice().into(),
            authority: config.backend_ca.as_deref().and_then(read_authority),
            config,
        }
    }
}

fn read_authority(file: &Path) -> Option<Vec<u8>> {
    let read = std::fs::read(file);
    if let Err(error) = &read {
        tracing::error!("backendCA: {}: {error}: no backend is trusted", file.display());
    }
    // Nobody's certificate is of an authority that cannot be read.
    Some(read.unwrap_or_default())
}

impl Balancer {
    /// A load balancer of a Service; nothing listens yet.
    pub(super) fn new(key: Arc<Key>, service: Arc<Service>) -> Balancer {
        Balancer {
            key,
            service,
            spec: None,
            refused: Vec::new(),
            unserved: BTreeMap::new(),
            addresses: Vec::new(),
            listeners: BTreeMap::new(),
            failed: BTreeMap::new(),
            log: None,
        }
    }

    /// Takes a new state of the Service. One that was made anew under the same name has nothing of
    /// the old one: what was in the clear there may ask for TLS here.
    pub(super) fn update(self, service: Arc<Service>) -> Balancer {
        let same = self.service.metadata.uid == service.metadata.uid;
        Balancer { service, spec: self.spec.filter(|_| same), ..self }
    }

    /// Reads what the Service asks for. What makes no sense changes nothing; where nothing is known yet, it is as it last made sense.
    ///
    /// A port is only opened when all that its Service says of it makes sense and is there: one
    /// that asks for TLS without a certificate is not served, and neither is a port that is new in
    /// a Service with a value that is not accepted. A port that is open stays as it was.
    pub(super) fn read(&mut self, shared: &Shared, around: Around<'_>) {
        let ingress = self.service.status.load_balancer.ingress.iter();
        self.addresses = ingress.filter_map(|one| ip::parse(&one.ip)).collect();
        match shared.config.read(&self.service, &shared.options, around) {
            Ok(Reading { mut spec, unserved }) => {
                if !unserved.is_empty()
                    && let Some(before) = self.spec.clone().or_else(|| self.recall(shared, around))
                {
                    spec.keep_served(&before);
                }
                if self.spec.as_deref() != Some(&spec) {
                    self.spec = Some(Arc::new(spec));
                }
                self.refuse(&unserved);
            }
            Err(refused) => {
                if self.spec.is_none() {
                    self.spec = self.recall(shared, around);
                }
                self.refuse(&refused);
            }
        }
        let place = self.spec.as_ref().zip(self.addresses.first());
        self.log = place.and_then(|(spec, address)| shared.logs.open(&shared.config, spec, *address));
    }

    /// Returns what the Service asked for when that last made sense.
    fn recall(&self, shared: &Shared, around: Around<'_>) -> Option<Arc<Spec>> {
        let read = |service: &Service| shared.config.read(service, &shared.options, around).map(|reading| reading.spec);
        spec::recall(&self.service, read).map(Arc::new)
    }

    /// Notes what is wrong, and which ports are not served because of it.
    fn refuse(&mut self, refused: &[Refusal]) {
        let served = self.open_ports();
        let all = PortId::all(&self.service);
        self.refused = refused.iter().map(|one| one.explained(&served, &all)).collect();
        let why = |port: PortId| {
            let named = refused.iter().find(|one| one.ports.contains(&port)).or(refused.first())?;
            (!served.contains(&port)).then(|| (port, named.to_string()))
        };
        self.unserved = all.iter().filter_map(|port| why(*port)).collect();
    }

    /// Returns the ports that are open, or that the kernel serves.
    pub(super) fn open_ports(&self) -> Vec<PortId> {
        let Some(spec) = &self.spec else {
            let ingress = &self.service.status.load_balancer.ingress;
            let by_kernel = ingress.iter().any(|one| one.ip_mode.as_deref() != Some("Proxy"));
            return if by_kernel { spec::without_tls(&self.service) } else { Vec::new() };
        };
        let failed = |listener: &&Listener| self.failed.contains_key(&self.listener_key(listener));
        spec.served().filter(|listener| !failed(listener)).map(Listener::id).collect()
    }

    /// Whether threads of ours carry its bytes.
    pub(super) fn is_proxied(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.path == Carrier::Userspace) && !self.addresses.is_empty()
    }

    /// Listens where it is to listen, and nowhere else. `new` gives the backends of a listener that is new.
    pub(super) fn listen(
        &mut self,
        engine: &Engine,
        shared: &Shared,
        around: Around<'_>,
        new: impl Fn(&Listener) -> Arc<Backends>,
    ) {
        let wanted: Vec<Listener> = match (&self.spec, self.is_proxied()) {
            (Some(spec), true) => spec.served().filter(|one| one.protocol == Protocol::Tcp).cloned().collect(),
            _ => Vec::new(),
        };
        let keys: Vec<ListenerKey> = wanted.iter().map(|listener| self.listener_key(listener)).collect();
        for gone in self.listeners.keys().filter(|key| !keys.contains(key)).cloned().collect::<Vec<_>>() {
            engine.stop(&gone);
            self.listeners.remove(&gone);
        }
        self.failed.retain(|key, _| keys.contains(key));
        for (key, listener) in keys.into_iter().zip(wanted) {
            self.serve(engine, shared, around, (key, listener), &new);
        }
    }

    /// Listens nowhere any more.
    pub(super) fn stop(&mut self, engine: &Engine) {
        for key in std::mem::take(&mut self.listeners).into_keys() {
            engine.stop(&key);
        }
    }

    fn listener_key(&self, listener: &Listener) -> ListenerKey {
        ListenerKey { service: self.key.clone(), port: listener.port, protocol: listener.protocol }
    }

    fn serve(
        &mut self,
        engine: &Engine,
        shared: &Shared,
        around: Around<'_>,
        (key, listener): (ListenerKey, Listener),
        new: &impl Fn(&Listener) -> Arc<Backends>,
    ) {
        let Some(spec) = self.spec.clone() else { return };
        let before = self.listeners.get(&key);
        let made = self.serving(shared, around, &spec, &listener, before.map(|served| &*served.serving), new);
        let (serving, mut problem) = match made {
            Ok(made) => made,
            Err(problem) => {
                let said = before.map_or_else(|| self.failed.get(&key), |served| served.problem.as_ref());
                if said != Some(&problem) {
                    tracing::warn!(service = %self.key, port = listener.port, "a listener is not served as it asks: {problem}");
                }
                match self.listeners.get_mut(&key) {
                    Some(served) => served.problem = Some(problem),
                    None => drop(self.failed.insert(key, problem)),
                }
                return;
            }
        };
        self.failed.remove(&key);
        let before = self.listeners.get(&key);
        if before.is_some_and(|served| same(&served.serving, &serving) && served.problem == problem) {
            return;
        }
        let serving = Arc::new(serving);
        if let Err(error) = engine.serve(key.clone(), serving.clone()) {
            tracing::warn!(service = %self.key, port = listener.port, "{error}");
            problem = Some(error.to_string());
        }
        self.listeners.insert(key, Served { serving, problem });
    }

    /// What a listener serves, and what is wrong with that; or why it cannot be served.
    fn serving(
        &self,
        shared: &Shared,
        around: Around<'_>,
        spec: &Arc<Spec>,
        listener: &Listener,
        before: Option<&Serving>,
        new: &impl Fn(&Listener) -> Arc<Backends>,
    ) -> Result<(Serving, Option<String>), String> {
        let (tls, problem) = self.tls(shared, around, listener, before)?;
        let serving = Serving {
            spec: spec.clone(),
            listener: listener.clone(),
            addresses: self.addresses.clone(),
            backends: before.map_or_else(|| new(listener), |before| before.backends.clone()),
            tls,
            reencrypt: self.reencrypt(shared, listener, before)?,
            log: self.log.clone(),
            sources: sources(spec, &shared.config),
            trusted: shared.trusted.clone(),
        };
        Ok((serving, problem))
    }

    fn tls(
        &self,
        shared: &Shared,
        around: Around<'_>,
        listener: &Listener,
        before: Option<&Serving>,
    ) -> Result<(Option<Arc<ServerTls>>, Option<String>), String> {
        let Some(tls) = &listener.tls else { return Ok((None, None)) };
        let old = before.and_then(|before| before.tls.as_ref());
        let shown = old.map_or(&[][..], |old| &old.certificates);
        let wanted = Wanted { namespace: &self.key.namespace, names: &tls.certificate, before: shown };
        let found = shared.certificates.find(wanted, around.secrets, around.now);
        let mistakes: Vec<String> = found.mistakes.iter().map(ToString::to_string).collect();
        let problem = (!mistakes.is_empty()).then(|| mistakes.join("; "));
        let alpn = if listener.speaks == Speaks::Bytes { &[][..] } else { ALPN_HTTP };
        match ServerTls::renewed(old, &found.certificates, &tls.policy, alpn) {
            Ok(tls) => Ok((Some(tls), problem)),
            Err(error) => Err(problem.unwrap_or_else(|| error.to_string())),
        }
    }

    fn reencrypt(
        &self,
        shared: &Shared,
        listener: &Listener,
        before: Option<&Serving>,
    ) -> Result<Option<Arc<ClientTls>>, String> {
        if !listener.reencrypt {
            return Ok(None);
        }
        let same = |before: &&Serving| before.listener.speaks == listener.speaks;
        if let Some(known) = before.filter(same).and_then(|before| before.reencrypt.clone()) {
            return Ok(Some(known));
        }
        let host = format!("{}.{}.svc", self.key.name, self.key.namespace);
        let hosts = [host.clone(), format!("{host}.cluster.local")];
        let alpn: &[&str] = match listener.speaks {
            Speaks::Bytes => &[],
            Speaks::Http => &["http/1.1"],
            Speaks::H2c => &["h2"],
        };
        ClientTls::new(shared.authority.as_deref(), &hosts, alpn)
            .map(|tls| Some(Arc::new(tls)))
            .map_err(|error| error.to_string())
    }
}

/// Who may use a load balancer; `None`: everybody.
pub(super) fn sources(spec: &Spec, config: &Config) -> Option<Arc<[IpNet]>> {
    if spec.sources.ranges.is_empty() && spec.sources.groups.is_empty() {
        return None;
    }
    let groups = spec.sources.groups.iter().filter_map(|name| config.security_groups.get(name)).flatten();
    Some(spec.sources.ranges.iter().chain(groups).copied().collect())
}

/// Whether the engine need not hear of it.
fn same(one: &Serving, other: &Serving) -> bool {
    let tls = |one: &Option<Arc<ServerTls>>, other: &Option<Arc<ServerTls>>| match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    };
    let logged = one.log.is_some() == other.log.is_some();
    one.spec == other.spec
        && one.listener == other.listener
        && one.addresses == other.addresses
        && tls(&one.tls, &other.tls)
        && logged
}
