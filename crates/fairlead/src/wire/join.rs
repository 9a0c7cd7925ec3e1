//! A machine that joins the cluster of a server elsewhere: it gets a certificate, keeps it, and is a Node from then on.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use fairlead_api::Look;
use fairlead_cluster::Cluster;
use fairlead_monitor::Format;
use fairlead_pods::api::{Api, Peers, serve};
use fairlead_proxy::Pages;
use fairlead_server::join;
use fairlead_server::serve::certificates::{self, Pair};
use fairlead_server::serve::{files, kubeconfig, tls};
use http::StatusCode;
use jiff::Timestamp;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use tokio::net::{TcpListener, lookup_host};
use tokio_util::sync::CancellationToken;

use super::client::Access;
use super::{link, machine};
use crate::config::{Join, Node};

/// What a machine that has joined keeps in its data directory.
const MEMBERSHIP: &str = "node.json";
/// The same for other programs.
const KUBECONFIG: &str = "node.kubeconfig";
/// How often the certificate is looked at, and how long to wait after a renewal that failed.
const LOOK: Duration = Duration::from_secs(3600);

/// Joins, and is a Node until a signal comes.
pub(crate) async fn run(join: Join) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    super::stop_on_signal(stop.clone())?;
    files::make_dir(&join.data_dir).with_context(|| format!("--data-dir: {}", join.data_dir.display()))?;
    while !stop.is_cancelled() {
        let member = Member::get(&join).await?;
        // With a new certificate everything begins anew. Pods and rules live on meanwhile.
        let round = stop.child_token();
        let parts = live(&join, &member, round.clone());
        let renewal = async {
            member.until_old(&round).await;
            round.cancel();
        };
        let (ended, ()) = tokio::join!(parts, renewal);
        ended?;
    }
    Ok(())
}

/// A machine of a cluster.
#[derive(Debug, Clone, PartialEq)]
struct Member {
    /// The URLs of the servers, those that this machine was told first.
    servers: Vec<String>,
    node: String,
    /// By whom the server is known, as PEM.
    authorities: String,
    pair: Pair,
    /// What the server says of the cluster.
    cluster: Value,
}

impl Member {
    /// Who this machine is: as it remembers, renewed if the server can be asked; or somebody new.
    async fn get(join: &Join) -> anyhow::Result<Member> {
        let file = join.data_dir.join(MEMBERSHIP);
        let Some(mut old) = Member::read(&file)? else { return Member::join(join).await?.kept(join) };
        if old.node != join.name {
            bail!(
                "this machine has joined as {}, not as {}; say --hostname-override {0}, or remove {}",
                old.node,
                join.name,
                file.display()
            );
        }
        if !join.servers.is_empty() {
            old.servers.clone_from(&join.servers);
        }
        match old.renewed().await {
            // The certificate is good without the file, until the next start.
            Ok(member) => Ok(member.kept_if_possible(join)),
            Err(Refused::Known(why)) if join.token.is_some() => {
                tracing::warn!("the server does not know this machine any more ({why}); joining anew");
                Member::join(join).await?.kept(join)
            }
            Err(Refused::Known(why)) => bail!("{}: {why}", old.servers.join(",")),
            Err(Refused::Away(error)) => {
                tracing::warn!("the server cannot be asked, going on with what it said before: {error:#}");
                Ok(old.kept_if_possible(join))
            }
        }
    }

    /// Joins with a token, once it is known that the server is the one that was meant.
    async fn join(join: &Join) -> anyhow::Result<Member> {
        let Some(token) = join.token.as_ref().filter(|_| !join.servers.is_empty()) else {
            bail!(
                "this machine has not joined yet: say --server and --token, as `fairlead token` on the server has it"
            );
        };
        let mut away = None;
        for server in &join.servers {
            let stranger = Access::unverified(server)?;
            let (status, text) = match stranger.ask("GET", join::AUTHORITIES, None, String::new()).await {
                Ok(answer) => answer,
                Err(error) => {
                    away = Some(error.context(server.clone()));
                    continue;
                }
            };
            if status != StatusCode::OK {
                bail!(
                    "{server}: nobody can join this server: {status}; it listens at a loopback address, or is no fairlead"
                );
            }
            let found = join::pin(&text);
            if found != token.pin {
                bail!("{server} is not the server this token is for: its authorities are {found}, not {}", token.pin);
            }
            let access = Access::known(server, &text, None)?;
            match ask(access, &join.servers, &join.name, Some(&token.secret)).await {
                Err(Refused::Away(error)) => away = Some(error.context(server.clone())),
                asked => return asked.map_err(|refused| anyhow!("{server}: {refused}")),
            }
        }
        Err(away.unwrap_or_else(|| anyhow!("--server names none")))
    }

    /// The same machine with a new certificate, from the first server that answers.
    async fn renewed(&self) -> Result<Member, Refused> {
        let mut away = anyhow!("no server is known");
        for server in &self.servers {
            let access = Access::known(server, &self.authorities, Some(&self.pair)).map_err(Refused::Away)?;
            match ask(access, &self.servers, &self.node, None).await {
                Err(Refused::Away(error)) => away = error.context(server.clone()),
                asked => return asked,
            }
        }
        Err(Refused::Away(away))
    }

    fn read(file: &Path) -> anyhow::Result<Option<Member>> {
        let text = files::read_if_there(file).with_context(|| file.display().to_string())?;
        let Some(text) = text else { return Ok(None) };
        let value: Value = serde_json::from_str(&text).with_context(|| format!("{} is damaged", file.display()))?;
        let field = |name: &str| value.text(name).to_owned();
        let servers: Vec<String> = value.texts("servers").into_iter().map(str::to_owned).collect();
        Ok(Some(Member {
            // A machine that joined with an earlier version knows one.
            servers: if servers.is_empty() { vec![field("server")] } else { servers },
            node: field("node"),
            authorities: field("authorities"),
            pair: Pair { certificate: field("certificate"), key: field("key") },
            cluster: value.at("cluster").clone(),
        }))
    }

    /// Writes the membership and the kubeconfig to disk, or logs why that fails.
    fn kept_if_possible(self, join: &Join) -> Member {
        if let Err(error) = self.write(join) {
            tracing::warn!("the membership of this machine cannot be written: {error:#}");
        }
        self
    }

    /// Writes the membership and the kubeconfig to disk.
    fn kept(self, join: &Join) -> anyhow::Result<Member> {
        self.write(join)?;
        Ok(self)
    }

    fn write(&self, join: &Join) -> anyhow::Result<()> {
        let value = json!({
            "server": self.servers[0],
            "servers": self.servers,
            "node": self.node,
            "authorities": self.authorities,
            "certificate": self.pair.certificate,
            "key": self.pair.key,
            "cluster": self.cluster,
        });
        let access = kubeconfig::render(&self.servers[0], &self.authorities, &self.pair);
        for (name, text) in [(MEMBERSHIP, value.to_string()), (KUBECONFIG, access)] {
            let file = join.data_dir.join(name);
            files::write_secret(&file, text.as_bytes()).with_context(|| file.display().to_string())?;
        }
        Ok(())
    }

    /// Waits until the certificate should be renewed and the server is there to do it.
    async fn until_old(&self, stop: &CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            if certificates::is_fresh(&self.pair.certificate, Timestamp::now()) {
                continue;
            }
            match self.renewed().await {
                Ok(_) => return,
                Err(refused) => tracing::warn!("this machine's certificate cannot be renewed: {refused}"),
            }
        }
    }

    fn peers(&self) -> anyhow::Result<Peers> {
        Ok(Peers {
            authorities: tls::certificates(&self.authorities)?,
            chain: tls::certificates(&self.pair.certificate)?,
            key: PrivateKeyDer::from_pem_slice(self.pair.key.as_bytes())?,
        })
    }
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
enum Refused {
    /// The server said so.
    #[error("{0}")]
    Known(String),
    /// It did not answer.
    #[error("{0:#}")]
    Away(anyhow::Error),
}

/// Asks for a certificate.
async fn ask(access: Access, servers: &[String], node: &str, token: Option<&str>) -> Result<Member, Refused> {
    let away = |error: anyhow::Error| Refused::Away(error);
    let (pair, request) = certificates::request().map_err(|error| away(error.into()))?;
    let body = json!({"node": node, "request": request}).to_string();
    let (status, text) = access.ask("POST", join::PATH, token, body).await.map_err(away)?;
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    if status.is_server_error() {
        return Err(away(anyhow!("{status}: {}", answer.text("message"))));
    }
    if status != StatusCode::CREATED {
        let hint = if status == StatusCode::UNAUTHORIZED && token.is_some() { ": no such token" } else { "" };
        return Err(Refused::Known(format!("{}{hint}", answer.text("message"))));
    }
    Ok(Member {
        servers: servers.to_vec(),
        node: node.to_owned(),
        authorities: answer.text("authorities").to_owned(),
        pair: Pair { certificate: answer.text("certificate").to_owned(), key: pair.key },
        cluster: answer.at("cluster").clone(),
    })
}

/// Runs the parts of a Node.
async fn live(join: &Join, member: &Member, stop: CancellationToken) -> anyhow::Result<()> {
    let (node, proxy) = join.parts(&member.cluster)?;
    let balancer = join.balancer()?;
    link::prepare(&node.dns).await.context("this machine cannot be a Node; run it as root")?;
    tokio::spawn(link::keep(node.dns.clone(), stop.clone()));
    // What goes wrong here the runner says.
    let _ = fairlead_pods::forward();
    let file = join.data_dir.join(KUBECONFIG);
    let cluster = Cluster::connect_to_all(Some(&file), &member.servers)
        .await
        .map_err(|error| anyhow!("{}: {error}", file.display()))?;
    let own = machine::addresses(Some(own_address(join, member).await?));
    let listener = listen(join, own[0]).await?;
    let peers = member.peers()?.config()?;
    let account = super::account();
    let names = fairlead_dns::Metrics::with_account(&account);
    let place = machine::Place {
        data_dir: join.data_dir.clone(),
        authority: member.authorities.clone(),
        addresses: own.clone(),
        port: Some(join.port),
        routes: true,
        names: names.clone(),
        pods: fairlead_pods::Metrics::new(),
        account: account.clone(),
    };
    // Beside a server its page has them.
    let api = |api: Api| api.with_account(&account).with_others(move || names.text(Format::Prometheus));
    let serve = |pods: Api| tokio::spawn(serve(listener, peers, api(pods), stop.clone()));
    announce(&node, &own, member);
    let remembered = remember(&cluster, join, member);
    let proxy = async {
        let Some(mut settings) = proxy else { return };
        settings.node_ips = own;
        let run = || fairlead_proxy::run(cluster.clone(), settings.clone(), Pages::default(), stop.clone());
        super::proxy::keep(run, &stop).await;
    };
    let balancer = async {
        if let Some(settings) = balancer {
            let settings = fairlead_balancer::run::Settings { account: account.clone(), ..settings };
            fairlead_balancer::run::run(cluster.clone(), settings, stop.clone()).await;
        }
    };
    let parts = async {
        tokio::join!(proxy, balancer, machine::run(&cluster, &node, place, serve, stop.clone()));
    };
    tokio::select! {
        () = parts => {}
        () = remembered => {}
    }
    Ok(())
}

/// Writes down the servers that become known, for a start when those that were named are gone;
/// never returns.
async fn remember(cluster: &Cluster, join: &Join, member: &Member) {
    let Some(mut urls) = cluster.server_urls() else { return std::future::pending().await };
    while urls.changed().await.is_ok() {
        let servers = urls.borrow_and_update().clone();
        Member { servers, ..member.clone() }.kept_if_possible(join);
    }
    std::future::pending().await
}

async fn listen(join: &Join, address: IpAddr) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::new(address, join.port);
    TcpListener::bind(address).await.with_context(|| format!("--port: cannot listen at {address}"))
}

fn announce(node: &Node, own: &[IpAddr], member: &Member) {
    let _ = std::io::Write::write_fmt(
        &mut std::io::stdout(),
        format_args!("This machine is the Node {} at {} of {}.\n", node.name, own[0], member.servers[0]),
    );
}

/// The address this machine has towards the server. Nothing is sent: connecting a UDP socket only asks the routing table.
async fn own_address(join: &Join, member: &Member) -> anyhow::Result<IpAddr> {
    if let Some(ip) = join.node_ip {
        return Ok(ip);
    }
    let (host, port) = super::client::place(&member.servers[0])?;
    let server = lookup_host((host.as_str(), port)).await.with_context(|| host.clone())?.next();
    let server = server.with_context(|| format!("{host} has no address"))?;
    let any: SocketAddr = if server.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server).with_context(|| format!("no way to {server}"))?;
    Ok(socket.local_addr()?.ip())
}
