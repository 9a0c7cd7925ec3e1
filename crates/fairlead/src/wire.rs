//! Puts the parts together and runs them: store, certificates, server, listener, until told to stop. The only place that
//! knows what a configuration turns into.

use std::io::{IsTerminal, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use fairlead_api::Settings;
use fairlead_api::{Kind, kinds};
use fairlead_kernel::relay::raise_descriptor_limit;
use fairlead_runtime::{Account, MachineLimits};
use fairlead_server::audit::Audit;
use fairlead_server::backup::Backup;
use fairlead_server::repair::INTERVAL;
use fairlead_server::serve::{self, Connections, Limits, kubeconfig};
use fairlead_server::{Admission, Options, Server};
use jiff::{SignedDuration, Timestamp};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Node};
use crate::register::{self, RegisterFlags};
use crate::ui;
use identity::Identity;

pub(crate) mod balancer;
mod client;
pub(crate) mod control;
pub(crate) mod dns;
mod findings;
mod history;
mod identity;
pub(crate) mod join;
mod link;
mod machine;
pub(crate) mod proxy;
mod store;
#[cfg(test)]
mod tests;
pub(crate) mod token;

/// The name of the administrator's kubeconfig in the data directory.
pub(crate) const KUBECONFIG: &str = "admin.kubeconfig";

/// How long the link works that is shown at the start.
const FIRST_LINK: SignedDuration = SignedDuration::from_hours(1);
/// The directory of Pods in the data directory.
pub(crate) const PODS: &str = "pods";

/// Runs until a signal comes.
pub(crate) async fn run(config: Config) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    start(config, stop, announce).await
}

/// Runs until told to stop. `ready` hears when requests are answered.
async fn start(config: Config, stop: CancellationToken, ready: impl FnOnce(&Started)) -> anyhow::Result<()> {
    let began = Instant::now();
    let account = account();
    tracing::debug!(machine = ?account.machine(), "limits of this process");
    let address = SocketAddr::new(config.bind_address, config.secure_port);
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("--bind-address, --secure-port: cannot listen at {address}"))?;
    let address = listener.local_addr()?;
    let node = machine::prepare(&config, &stop).await?;
    let inside = inside_listener(&config, node.as_ref(), address.port()).await;
    let identity = Identity::prepare(&config, Timestamp::now())?;
    let url = kubeconfig::server_url(address);
    identity.write_kubeconfig(&config.data_dir, &url, Timestamp::now())?;

    let audit = config.audit.clone().map(|options| {
        let path = options.path.display().to_string();
        Audit::open(options).with_context(|| format!("--audit-log-path: {path}"))
    });
    let audit = audit.transpose()?;
    let (store, backup) = store::open(&config).await?;
    let authenticator = identity.authenticator(&config)?;
    let service = Server::new(
        store,
        options(&config, address, inside.as_ref().and_then(|listener| listener.local_addr().ok()), backup)?,
        authenticator,
        audit,
        stop.clone(),
    )
    .await?;
    service.bound(config.in_flight, config.watches, &account);
    let dialer = identity.dialer(Timestamp::now())?;
    service.reach_nodes_by(dialer.clone());
    let joinable = reachable(&config).is_some();
    if joinable {
        service.let_join(identity.join(&config, Timestamp::now())?);
        token::keep_or_retry(&service, &config.data_dir, &identity.authorities(Timestamp::now())?, &stop).await;
    }
    let (history, keeper) = history::beside(&service, &config, &stop).unzip();
    let here = ui::Here { history, account: account.clone(), ..ui::Here::default() };
    let controllers = tokio::spawn({
        let (server, config, stop) = (service.clone(), config.clone(), stop.clone());
        let metrics = here.control.clone();
        let certificates = identity.authorities(Timestamp::now())?;
        async move { control::beside(&server, &config, certificates, metrics, stop).await }
    });
    // Who looks at the same objects through one door shares what was read of them.
    let door = ui::door(&service);
    ui::show(&service, &door, &config, here.clone(), &stop);
    let page = first_link(&service, &url)?;
    let proxy = tokio::spawn({
        let (server, config, stop) = (service.clone(), config.clone(), stop.clone());
        let view = here.proxy.clone();
        async move { proxy::beside(&server, &config, &view, stop).await }
    });
    let balancer = tokio::spawn({
        let (server, config, stop) = (service.clone(), config.clone(), stop.clone());
        let account = account.clone();
        async move { balancer::beside(&server, &config, account, stop).await }
    });
    let machine = tokio::spawn({
        let (server, config, stop) = (service.clone(), config.clone(), stop.clone());
        let way = (identity.renewal.authority.pem.clone(), dialer.clone());
        let here = here.clone();
        async move {
            if let Some(node) = node {
                machine::beside(&server, node, &config, way, &here, stop).await;
            }
        }
    });
    let findings = tokio::spawn({
        let (config, stop) = (config.clone(), stop.clone());
        async move { findings::beside(&door, &config, stop).await }
    });
    let repairs = tokio::spawn(service.clone().keep_repaired(INTERVAL));
    let expiry = tokio::spawn(service.clone().keep_expired(config.event_ttl));
    let endpoints = tokio::spawn(service.clone().keep_endpoints());
    let connections = Connections::new(config.connections.of(Limits::of(account.machine())), &account);

    let pair = identity.renewal.pair(Timestamp::now())?;
    let (configs, tls) = watch::channel(identity.renewal.config(&pair)?);
    let data_dir = config.data_dir.clone();
    let server = url.clone();
    let renewal = identity.renewal.run(
        pair,
        configs,
        Arc::new(Timestamp::now),
        move |renewal, now| {
            if let Err(error) = identity::write_kubeconfig(renewal, &data_dir, &server, now) {
                tracing::warn!(%error, "the administrator's certificate cannot be renewed");
            }
            if let Err(error) = identity::renew_dialer(renewal, &data_dir, &dialer, now) {
                tracing::warn!(%error, "the certificate for Nodes cannot be renewed");
            }
        },
        stop.clone(),
    );
    let renewal = tokio::spawn(renewal);
    tokio::spawn(wake_threads());
    let kubeconfig = config.data_dir.join(KUBECONFIG);
    ready(&Started {
        page,
        url,
        kubeconfig: kubeconfig.display().to_string(),
        milliseconds: began.elapsed().as_millis(),
        joinable,
    });
    let also = async {
        if let Some(inside) = inside {
            serve::serve(inside, tls.clone(), service.clone(), connections.clone(), stop.clone()).await;
        }
    };
    tokio::join!(serve::serve(listener, tls.clone(), service.clone(), connections.clone(), stop.clone()), also);
    stop.cancel();
    history::end(keeper).await;
    let (_, controllers, ..) =
        tokio::join!(renewal, controllers, proxy, balancer, machine, findings, repairs, expiry, endpoints);
    Ok(controllers.context("running controllers")??)
}

/// Wakes the threads of the run time now and then, so that each gives its free memory back when it
/// parks again, also when there is nothing to do after a load.
async fn wake_threads() {
    const INTERVAL: Duration = Duration::from_secs(10);
    let threads = tokio::runtime::Handle::current().metrics().num_workers();
    loop {
        tokio::time::sleep(INTERVAL).await;
        for _ in 0..threads {
            tokio::spawn(tokio::task::yield_now());
        }
    }
}

/// Raises the soft limit of file descriptors to the hard limit, and returns the account of budgets that all components of
/// this process share.
pub(crate) fn account() -> Account {
    if let Err(error) = raise_descriptor_limit() {
        tracing::warn!("the limit of open files (RLIMIT_NOFILE) cannot be raised: {error}");
    }
    let account = Account::new(MachineLimits::read());
    fairlead_monitor::http::bound_by(&account);
    account
}

/// A link for somebody who sits at a terminal; what is printed elsewhere is kept, in the journal of the system, say, and others read it.
fn first_link(server: &Server, url: &str) -> anyhow::Result<Option<String>> {
    if !std::io::stdout().is_terminal() {
        return Ok(None);
    }
    let link = server.link(false, FIRST_LINK).map_err(|failure| anyhow!(failure.message))?;
    Ok(Some(format!("{url}{}", link.path())))
}

/// A second place to listen at, for the Pods of this machine alone, where the first is a loopback address.
async fn inside_listener(config: &Config, node: Option<&Node>, port: u16) -> Option<TcpListener> {
    let address = SocketAddr::new(machine::inside(config, node)?, port);
    match TcpListener::bind(address).await {
        Ok(listener) => Some(listener),
        Err(error) => {
            tracing::warn!("Pods cannot reach the API: cannot listen at {address}: {error}");
            None
        }
    }
}

/// What the rules of objects depend on. `inside` is where Pods of this machine find the server.
fn options(
    config: &Config,
    address: SocketAddr,
    inside: Option<SocketAddr>,
    backup: Option<Backup>,
) -> anyhow::Result<Options> {
    if !config.admission_disabled.is_empty() {
        let plugins = config.admission_disabled.join(", ");
        tracing::warn!("--disable-admission-plugins: these are part of the server and stay on: {plugins}");
    }
    Ok(Options {
        settings: settings(config),
        extra_kinds: extra_kinds(config)?,
        admission: Admission {
            external_ips: config.external_ips,
            external_ip_ranges: config.external_ip_ranges.clone(),
            load_balancer_pools: config.balancer.as_ref().map(balancer::pools).unwrap_or_default(),
            load_balancer: config.balancer.as_ref().map(balancer::limits),
            grants_for_images: config.node.as_ref().is_some_and(|node| node.pods),
            service_accounts: config.service_accounts,
        },
        advertise: inside.unwrap_or_else(|| SocketAddr::new(advertised(config), address.port())),
        authorization: config.authorization,
        request_timeout: config.request_timeout,
        backup,
    })
}

/// The address at which Pods and other machines find this server.
fn advertised(config: &Config) -> IpAddr {
    let bound = config.bind_address;
    let reachable = !(bound.is_loopback() || bound.is_unspecified());
    config.advertise_address.or(reachable.then_some(bound)).or_else(|| outward(bound)).unwrap_or(bound)
}

/// The address at which other machines find this server; `None`: they do not.
fn reachable(config: &Config) -> Option<IpAddr> {
    let alone = config.bind_address.is_loopback() && config.advertise_address.is_none();
    Some(advertised(config)).filter(|ip| !alone && !ip.is_loopback() && !ip.is_unspecified())
}

/// The address this machine has towards the outside. Nothing is sent: connecting a UDP socket only asks the routing table. An address
/// that it has itself, a load balancer's say, is no outside.
fn outward(bound: IpAddr) -> Option<IpAddr> {
    let (any, elsewhere) = match bound {
        IpAddr::V4(_) => ("0.0.0.0:0", ["192.0.2.1:9", "198.51.100.1:9", "203.0.113.1:9"]),
        IpAddr::V6(_) => ("[::]:0", ["[2001:db8::1]:9", "[2001:db8:ffff::1]:9", "[3fff::1]:9"]),
    };
    let towards = |place: SocketAddr| {
        let socket = std::net::UdpSocket::bind(any).ok()?;
        socket.connect(place).ok()?;
        Some(socket.local_addr().ok()?.ip()).filter(|ip| *ip != place.ip())
    };
    elsewhere.into_iter().find_map(|place| towards(place.parse().ok()?))
}

/// Kinds that are served only when asked for: by `--runtime-config`, or by the gate they came with.
fn extra_kinds(config: &Config) -> anyhow::Result<Vec<&'static Kind>> {
    let optional = kinds::OPTIONAL;
    for (name, _) in &config.runtime_config {
        let known = optional.iter().chain(kinds::KINDS).any(|kind| kind.api_version() == *name);
        anyhow::ensure!(known, "--runtime-config: {name} is not an API version this server knows");
    }
    let asked = |kind: &Kind| {
        let wish = config.runtime_config.iter().find(|(name, _)| *name == kind.api_version());
        wish.map_or(config.gates.on("ServiceTopology"), |(_, on)| *on)
    };
    Ok(optional.iter().copied().filter(|kind| asked(kind)).collect())
}

fn settings(config: &Config) -> Settings {
    Settings {
        service_ranges: config.service_ranges.clone(),
        node_ports: config.node_ports.clone(),
        service_topology: config.gates.on("ServiceTopology"),
    }
}

/// What people want to know when the server is there.
struct Started {
    url: String,
    /// A link to the page that works once.
    page: Option<String>,
    kubeconfig: String,
    milliseconds: u128,
    /// Other machines can join.
    joinable: bool,
}

fn announce(started: &Started) {
    let Started { url, page, kubeconfig, milliseconds, joinable } = started;
    let page = match page {
        Some(link) => format!("Its page, once: {link}"),
        None => "Its page: run `fairlead ui` for a link.".to_owned(),
    };
    let _ = writeln!(
        std::io::stdout(),
        "Fairlead is ready at {url} after {milliseconds} ms.\n{page}\n\nexport KUBECONFIG={}\nkubectl get services",
        quoted(kubeconfig)
    );
    if *joinable {
        let _ =
            writeln!(std::io::stdout(), "fairlead token --join-command    # what to run on a machine that is to join");
    }
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

fn stop_on_signal(stop: CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("stopping on SIGTERM"),
            _ = interrupt.recv() => tracing::info!("stopping on SIGINT"),
        }
        stop.cancel();
        // Who asks twice does not want to wait.
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(1);
    });
    Ok(())
}

/// Registers an endpoint until a signal comes, and says with which code to exit.
pub(crate) async fn register(flags: &RegisterFlags) -> anyhow::Result<i32> {
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    register::run(flags, stop).await
}

/// Copies the embedded store into a file.
pub(crate) async fn backup(config: &Config, file: &Path) -> anyhow::Result<()> {
    store::backup(config, file).await
}

/// Makes the embedded store from a copy.
pub(crate) fn restore(config: &Config, file: &Path) -> anyhow::Result<()> {
    store::restore(config, file)
}

/// Ends the Pods of this machine, removes everything of ours from its kernel, and says what that was.
pub(crate) async fn cleanup(data_dir: &Path) -> anyhow::Result<()> {
    let mut removed = fairlead_pods::cleanup(&data_dir.join(PODS)).await.context("cleaning up Pods")?;
    removed.extend(fairlead_pods::outbound::remove().context("cleaning up Pods")?);
    removed.extend(fairlead_pods::routes::remove().context("cleaning up routes")?);
    removed.extend(link::remove().context("cleaning up")?);
    removed.extend(fairlead_proxy::cleanup().context("cleaning up")?);
    removed.extend(fairlead_balancer::announce::cleanup().context("cleaning up load balancers")?);
    report_removed(removed)
}

fn report_removed(removed: Vec<String>) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    if removed.is_empty() {
        writeln!(out, "Nothing of Fairlead is in this machine's kernel.")?;
    }
    for one in removed {
        writeln!(out, "removed {one}")?;
    }
    Ok(())
}
