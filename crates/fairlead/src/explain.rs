//! `fairlead explain`: why does a Service not work? Objects from the cluster and evidence from this machine, for the rules of crate
//! `explain`; as text, as JSON, and by the exit code.

use std::io::{IsTerminal, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context;
use clap::Args;
use fairlead_api::kinds;
use fairlead_api::source::Key;
use fairlead_api::view::Protocol;
use fairlead_cluster::{Cluster, Error};
use fairlead_explain::{From, Objects, Question, Report, Verdict};

use crate::door;
use crate::form::Form;
use crate::subject;
pub(crate) use here::Here;

pub(crate) mod events;
mod gather;
mod here;
pub(crate) mod names;
mod packet;
mod parts;
pub(crate) mod read;
mod show;

/// What exit codes mean, and examples.
pub(crate) const AFTER_HELP: &str = "\
Examples:
  fairlead explain svc/web                                  why nobody answers at Service web
  fairlead explain svc/web --from pod/client --port 80      as that Pod sees it
  fairlead explain svc/web -n shop --live                   send a packet, too, and show what the kernel does to it

It exits with 0 if the Service works, with 1 if it does not, and with 2 if that cannot be told.
Run as root on the Node it sees sockets, rules and parameters of the kernel; elsewhere it judges by the objects of the cluster.";

/// The options of `fairlead explain`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExplainFlags {
    /// The Service: svc/NAME, svc/NAMESPACE/NAME, svc NAME or NAME
    #[arg(value_name = "SERVICE", required = true, num_args = 1..)]
    service: Vec<String>,
    /// The namespace of Services and Pods that name none
    #[arg(long, short = 'n', value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// Who the client is: pod/NAME, pod/NAMESPACE/NAME, node, outside, or an address [default: somebody in the cluster]
    #[arg(long, value_name = "CLIENT")]
    from: Option<Client>,
    /// The port the client uses: a number or a name, with /UDP behind if it is not TCP [default: all of the Service]
    #[arg(long, value_name = "PORT")]
    port: Option<Port>,
    /// The name the client uses, such as web or web.shop [default: the whole name]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Send one packet from this machine, which is the client's Node, and show what its kernel did to it
    #[arg(long)]
    live: bool,
    /// Show what was seen in steps that are well, too
    #[arg(long, short = 'v')]
    verbose: bool,
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE", conflicts_with = "manifests")]
    kubeconfig: Option<PathBuf>,
    /// A file or directory of manifests instead of a cluster
    #[arg(long, value_name = "PATH", conflicts_with = "live")]
    manifests: Option<PathBuf>,
    /// The form of the answer
    #[arg(long, short = 'o', value_name = "FORM", value_enum, default_value = "text")]
    output: Form,
}

/// What is asked of [`answer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ask {
    /// About which Service, from where.
    pub(crate) question: Question,
    /// Whether a packet is to be sent.
    pub(crate) live: bool,
}

impl Ask {
    /// What words mean, as the command line and the page take them; empty ones were not said.
    pub(crate) fn read(service: Key, from: &str, port: &str, live: bool) -> Result<Ask, String> {
        let from = match from {
            "" => From::Cluster,
            said => said.parse::<Client>().map_err(|why| format!("from: {why}"))?.resolve(&service.namespace),
        };
        let (port, protocol) = match port {
            "" => (None, None),
            said => said
                .parse::<Port>()
                .map(|Port(port, protocol)| (Some(port), protocol))
                .map_err(|why| format!("port: {why}"))?,
        };
        Ok(Ask { question: Question { service, port, protocol, from, host: None }, live })
    }
}

/// Says what is the matter with a Service. `here` is what this machine is in the cluster; `Err` says why it cannot look.
async fn answer(cluster: &Cluster, ask: Ask, here: Result<&Here, String>) -> anyhow::Result<Report> {
    let objects = read::objects(cluster).await?;
    if let Some(why) = no_client(cluster, &objects, &ask.question.from).await {
        anyhow::bail!("--from: {why}");
    }
    Ok(judge(cluster, &objects, &ask, here).await)
}

/// Why the client cannot be looked at: of a Pod that does not exist nothing is seen, and so nothing would be wrong. Who may not read Pods
/// does not know.
pub(crate) async fn no_client(cluster: &Cluster, objects: &Objects, from: &From) -> Option<String> {
    let From::Pod(key) = from else { return None };
    if objects.pod(key).is_some() {
        return None;
    }
    let found = cluster.get(&kinds::POD, &key.namespace, &key.name).await;
    found.err().filter(Error::is_not_found)?;
    let others = objects.pods().map(|(other, _)| other).filter(|other| other.namespace == key.namespace);
    let near = subject::similar(&key.name, others.map(|other| &*other.name));
    Some(format!("there is no Pod {key}{}", near.map(|near| format!(", but one named {near}")).unwrap_or_default()))
}

/// The same of objects that were read.
pub(crate) async fn judge(cluster: &Cluster, objects: &Objects, ask: &Ask, here: Result<&Here, String>) -> Report {
    let evidence = gather::evidence(cluster, objects, ask, here).await;
    fairlead_explain::explain(&ask.question, objects, &evidence)
}

/// Answers, and says with which code to exit.
pub(crate) async fn run(flags: &ExplainFlags) -> i32 {
    match told(flags).await {
        Ok(Verdict::Ok | Verdict::Warn) => 0,
        Ok(Verdict::Broken) => 1,
        Ok(Verdict::Unknown) => 2,
        Err(error) => {
            crate::complain(&error);
            2
        }
    }
}

/// Prints the answer.
async fn told(flags: &ExplainFlags) -> anyhow::Result<Verdict> {
    let ask = ask(flags)?;
    let (cluster, from_files) = match &flags.manifests {
        Some(path) => (Cluster::from_manifests(path).context("--manifests")?.0, true),
        None => (door::open(flags.kubeconfig.as_deref()).await?.managed_by("fairlead-explain"), false),
    };
    let here = match from_files {
        true => Err("only files were looked at, no machine".to_owned()),
        false => Here::find(&cluster).await,
    };
    let report = answer(&cluster, ask, here.as_ref().map_err(Clone::clone)).await?;
    let text = match flags.output {
        Form::Text => show::text(&report, flags.verbose, std::io::stdout().is_terminal()),
        Form::Json => format!("{:#}\n", report.to_json()),
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing the answer")?;
    Ok(report.verdict)
}

fn ask(flags: &ExplainFlags) -> anyhow::Result<Ask> {
    let meant = subject::one(&flags.service, &subject::known(), Some(&kinds::SERVICE))?;
    anyhow::ensure!(
        meant.resource.kind_name == kinds::SERVICE.kind,
        "only Services are explained, as in svc/web; {} {} is none",
        meant.resource.kind_name,
        meant.name
    );
    let namespace = meant.namespace.unwrap_or_else(|| flags.namespace.clone());
    let (port, protocol) = flags.port.clone().map_or((None, None), |Port(port, protocol)| (Some(port), protocol));
    let question = Question {
        service: Key::new(namespace, meant.name),
        port,
        protocol,
        from: flags.from.as_ref().map_or(From::Cluster, |client| client.resolve(&flags.namespace)),
        host: flags.host.clone(),
    };
    Ok(Ask { question, live: flags.live })
}

/// `pod/web`, `pod/shop/web`, `node`, `node/n1`, `outside`, `198.51.100.7`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Client {
    Pod(Option<String>, String),
    Node(Option<String>),
    Outside(Option<IpAddr>),
}

impl FromStr for Client {
    type Err = String;

    fn from_str(text: &str) -> Result<Client, String> {
        let mistake = || "want pod/NAME, pod/NAMESPACE/NAME, node, outside, or an address".to_owned();
        let parts: Vec<&str> = text.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(mistake());
        }
        match parts[..] {
            ["pod" | "pods" | "po", name] => Ok(Client::Pod(None, name.to_owned())),
            ["pod" | "pods" | "po", namespace, name] => Ok(Client::Pod(Some(namespace.to_owned()), name.to_owned())),
            ["node"] => Ok(Client::Node(None)),
            ["node" | "nodes" | "no", name] => Ok(Client::Node(Some(name.to_owned()))),
            ["outside"] => Ok(Client::Outside(None)),
            [address] => address.parse().map(|ip| Client::Outside(Some(ip))).map_err(|_| mistake()),
            _ => Err(mistake()),
        }
    }
}

impl Client {
    /// With the namespace for a name that has none.
    pub(crate) fn resolve(&self, namespace: &str) -> From {
        match self {
            Client::Pod(own, name) => From::Pod(Key::new(own.as_deref().unwrap_or(namespace), name.as_str())),
            Client::Node(name) => From::Node(name.clone()),
            Client::Outside(ip) => From::Outside(*ip),
        }
    }
}

/// `80`, `http`, `53/UDP`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port(pub(crate) String, pub(crate) Option<Protocol>);

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Port, String> {
        let (port, protocol) = match text.rsplit_once('/') {
            None => (text, None),
            Some((port, protocol)) => match protocol.to_ascii_uppercase().as_str() {
                "TCP" => (port, Some(Protocol::Tcp)),
                "UDP" => (port, Some(Protocol::Udp)),
                "SCTP" => (port, Some(Protocol::Sctp)),
                _ => return Err("want TCP, UDP or SCTP behind the slash".to_owned()),
            },
        };
        if port.is_empty() { Err("want a number or a name".to_owned()) } else { Ok(Port(port.to_owned(), protocol)) }
    }
}

#[cfg(test)]
mod tests;
