//! `fairlead trace`: what happens to a packet on a Node, in words or as JSON, and by its exit code.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use fairlead_api::{Failure, Look, kinds};
use fairlead_cluster::{Cluster, Selection};
use fairlead_plan::NodePortAddresses;
use fairlead_proxy::trace::live::{self, Probe, Reply, Report};
use fairlead_proxy::trace::{self, Answer, From, Mistake, Objects, Question, World};
use fairlead_proxy::{Detection, Mode, Settings};
use ipnet::IpNet;
use serde_json::Value;

use crate::door;
use crate::form::Form;
use words::{Receiver, Sender};

pub(crate) mod part;
mod show;
mod words;

/// The options of `fairlead trace`.
#[derive(Debug, Clone, Args)]
pub(crate) struct TraceFlags {
    /// Who sends: pod/NAME, pod/NAMESPACE/NAME, node, or an address
    #[arg(long, value_name = "SENDER")]
    from: Sender,
    /// To whom: ADDRESS:PORT, svc/NAME:PORT or svc/NAMESPACE/NAME:PORT, with /UDP or /SCTP behind if it is not TCP
    #[arg(long, value_name = "RECEIVER")]
    to: Receiver,
    /// The namespace of Pods and Services that name none
    #[arg(long, short = 'n', value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// The interface on which the packet comes in [default: guessed]
    #[arg(long, value_name = "NAME")]
    iface: Option<String>,
    /// The Node whose rules it meets [default: the Pod's, this machine, or the only one there is]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// The mode of that Node's proxy
    #[arg(long, value_name = "MODE", value_enum, default_value = "nftables")]
    proxy_mode: ModeName,
    /// Ranges of Pods, as the proxy knows them [default: those of the Nodes]
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',')]
    cluster_cidr: Vec<IpNet>,
    /// Ranges of addresses on which node ports are served, or `primary`
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',')]
    nodeport_addresses: Vec<String>,
    /// Whether the proxy masquerades all that is sent to cluster IPs
    #[arg(long)]
    masquerade_all: bool,
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE", conflicts_with = "manifests")]
    kubeconfig: Option<PathBuf>,
    /// A file or directory of manifests instead of a cluster
    #[arg(long, value_name = "PATH")]
    manifests: Option<PathBuf>,
    /// Send one packet from this machine, which is the Node, and show what its kernel did to it
    #[arg(long)]
    live: bool,
    /// The network namespace of the Pod that sends it: a name, or a path
    #[arg(long, value_name = "NAME|PATH", requires = "live")]
    netns: Option<String>,
    /// The form of the answer
    #[arg(long, short = 'o', value_name = "FORM", value_enum, default_value = "text")]
    output: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeName {
    Nftables,
    Iptables,
    Ipvs,
    Userspace,
}

impl ModeName {
    fn mode(self) -> Mode {
        match self {
            ModeName::Nftables => Mode::Nftables,
            ModeName::Iptables => Mode::Iptables,
            ModeName::Ipvs => Mode::Ipvs,
            ModeName::Userspace => Mode::Userspace,
        }
    }
}

/// Answers, and says with which code to exit.
pub(crate) async fn run(flags: &TraceFlags) -> i32 {
    match answer(flags).await {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "fairlead: {error:#}");
            2
        }
    }
}

/// Prints the answer; says whether the packet arrives.
async fn answer(flags: &TraceFlags) -> anyhow::Result<bool> {
    let cluster = match &flags.manifests {
        Some(path) => Cluster::from_manifests(path)?.0,
        None => door::open(flags.kubeconfig.as_deref()).await?,
    };
    let question = Question {
        from: flags.from.resolve(&flags.namespace),
        to: flags.to.resolve(&flags.namespace),
        interface: flags.iface.clone(),
        node: flags.node.clone(),
        mode: flags.proxy_mode.mode(),
        here: flags.live,
    };
    let settings =
        Settings { detection: Detection::ClusterCidr(pod_ranges(&cluster, flags).await), ..settings(flags)? };
    let answer = trace::ask(&cluster, &settings, &question).await?;
    let report = match flags.live {
        true => Some(send(flags, &question.from, &answer).await?),
        false => None,
    };
    let text = match flags.output {
        Form::Text => show::text(&answer, report.as_ref()),
        Form::Json => format!("{:#}\n", show::json(&answer, report.as_ref())),
    };
    std::io::stdout().write_all(text.as_bytes()).context("writing the answer")?;
    Ok(arrives(&answer, report.as_ref()))
}

/// Ranges of Pods: those that were said, or else those of the Nodes.
async fn pod_ranges(cluster: &Cluster, flags: &TraceFlags) -> Vec<IpNet> {
    if !flags.cluster_cidr.is_empty() {
        return flags.cluster_cidr.clone();
    }
    // Without Nodes there are none; what is wrong with the cluster is told by the answer.
    let nodes = cluster.list(&Selection::all(&kinds::NODE)).await.map(|list| list.objects).unwrap_or_default();
    let nodes = nodes.iter().filter_map(|node| serde_json::from_slice::<Value>(&node.json).ok());
    let ranges = nodes.flat_map(|node| node.at("spec").list("podCIDRs").to_vec());
    ranges.filter_map(|range| range.as_str()?.parse().ok()).collect()
}

/// What the page asks, in words as the flags take them.
pub(crate) fn asked(mode: Mode, (from, to, namespace): (&str, &str, &str)) -> Result<Question, Failure> {
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    let wrong = |what: &str, why: String| Failure::bad_request(format!("{what}: {why}"));
    let sender: Sender = from.parse().map_err(|why| wrong("from", why))?;
    let receiver: Receiver = to.parse().map_err(|why| wrong("to", why))?;
    let (from, to) = (sender.resolve(namespace), receiver.resolve(namespace));
    Ok(Question { from, to, interface: None, node: None, mode, here: false })
}

/// What `-o json` prints, for the page. `settings` are those of this machine's proxy.
pub(crate) fn told(objects: Objects, settings: &Settings, question: &Question) -> Result<Value, Failure> {
    match World::of(objects, settings, question).and_then(|world| world.answer(settings, question)) {
        Ok(answer) => Ok(show::json(&answer, None)),
        Err(Mistake::Cluster(error)) => Err(error.into()),
        Err(mistake @ Mistake::Missing(..)) => Err(Failure::new(404, "NotFound", mistake.to_string())),
        Err(mistake) => Err(Failure::bad_request(mistake.to_string())),
    }
}

fn settings(flags: &TraceFlags) -> anyhow::Result<Settings> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let node_port_addresses = match &flags.nodeport_addresses[..] {
        [] => None,
        [primary] if primary == "primary" => Some(NodePortAddresses::Primary),
        ranges => {
            let ranges: Result<Vec<IpNet>, _> = ranges.iter().map(|range| range.parse()).collect();
            Some(NodePortAddresses::Ranges(ranges.context("--nodeport-addresses")?))
        }
    };
    Ok(Settings {
        node: host.trim().to_lowercase(),
        node_port_addresses,
        masquerade_all: flags.masquerade_all,
        ..Settings::default()
    })
}

/// Sends the packet that was asked about.
async fn send(flags: &TraceFlags, from: &From, answer: &Answer) -> anyhow::Result<Report> {
    let inside = *from == From::Node;
    anyhow::ensure!(
        inside || flags.netns.is_some(),
        "--live: a packet of another sender than this Node needs --netns, where that sender is"
    );
    let packet = &answer.packet;
    let to = SocketAddr::new(packet.dst, packet.port);
    let probe = Probe { to, protocol: packet.protocol, namespace: flags.netns.clone() };
    live::send(&probe).await.context("--live")
}

/// Whether it gets to an endpoint: what was seen counts more than what should be.
fn arrives(answer: &Answer, report: Option<&Report>) -> bool {
    match report {
        None => answer.arrives(),
        Some(report) => {
            let seen = report.answer == Reply::Answered || report.flow.is_some() && report.answer == Reply::Nothing;
            answer.arrives() && seen && report.ended_by().is_none()
        }
    }
}
