//! The command line.

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{BalancerFlags, ControlFlags, DnsFlags, Flags, JoinFlags, ProxyFlags};
use crate::doctor::DoctorFlags;
use crate::env::EnvFlags;
use crate::explain::ExplainFlags;
use crate::history::HistoryFlags;
use crate::history::difference::DiffFlags;
use crate::image::ImageFlags;
use crate::lb::LbFlags;
use crate::objects::{ApplyFlags, DeleteFlags, DescribeFlags, EventsFlags, GetFlags, WatchFlags};
use crate::pods::{ExecFlags, LogsFlags, PsFlags, RunFlags, StopFlags};
use crate::register::RegisterFlags;
use crate::shell::{CompletionFlags, ManFlags};
use crate::status::StatusFlags;
use crate::top::TopFlags;
use crate::trace::TraceFlags;
use crate::ui::link::UiFlags;

pub(crate) mod examples;
mod overview;
#[cfg(test)]
mod tests;

/// Kubernetes Services on plain machines: one binary, no containers.
#[derive(Debug, Parser)]
#[command(name = "fairlead", version, args_override_self = true, max_term_width = 120)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What was typed. Whoever wants help, or is mistaken, is told so, and the program ends.
    pub(crate) fn read() -> Cli {
        Cli::from_arg_matches(&Cli::whole().get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// The command line with its overview.
    pub(crate) fn whole() -> clap::Command {
        let command = Cli::command();
        let overview = overview::text(&command);
        command.help_template(overview)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start everything on this machine
    #[command(args_override_self = true, after_help = examples::UP)]
    Up(Box<Flags>),
    /// Make this machine a Node of the cluster of a server elsewhere
    #[command(args_override_self = true, after_help = examples::JOIN)]
    Join(Box<JoinFlags>),
    /// Show what lets other machines join the server of this one
    #[command(after_help = examples::TOKEN)]
    Token {
        /// Where everything is kept [default: as with up]
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// Show the whole command to run there
        #[arg(long)]
        join_command: bool,
    },
    /// Start the API server alone
    #[command(args_override_self = true, after_help = examples::SERVER)]
    Server(Box<Flags>),
    /// Run controllers against a cluster: EndpointSlices, Endpoints, namespaces, garbage collection
    #[command(args_override_self = true, after_help = examples::CONTROL)]
    Control(Box<ControlFlags>),
    /// Serve a cluster's Services on this machine, as kube-proxy does and with its options
    #[command(args_override_self = true, after_help = examples::PROXY)]
    Proxy(Box<ProxyFlags>),
    /// Answer questions about a cluster's names, as CoreDNS does and with its Corefile
    #[command(args_override_self = true, after_help = examples::DNS)]
    Dns(Box<DnsFlags>),
    /// Serve a cluster's Services of type LoadBalancer: addresses from pools, announced on the LAN, as MetalLB does and more
    #[command(args_override_self = true, after_help = examples::BALANCER)]
    Balancer(Box<BalancerFlags>),
    /// Print a link to the web page
    #[command(after_help = crate::ui::link::AFTER_HELP)]
    Ui(UiFlags),
    /// Show load balancers and how they do; take backends and Nodes out
    #[command(after_help = examples::LB)]
    Lb(LbFlags),
    /// Show what runs where and how it is, on one screen
    #[command(after_help = crate::status::AFTER_HELP)]
    Status(StatusFlags),
    /// Show the traffic of Services and their endpoints, second by second
    #[command(after_help = crate::top::AFTER_HELP)]
    Top(TopFlags),
    /// Say whether this machine is fit to serve Services, and what to do where it is not
    #[command(after_help = crate::doctor::AFTER_HELP)]
    Doctor(DoctorFlags),
    /// End all Pods of this machine and remove everything Fairlead put into its kernel
    #[command(after_help = examples::CLEANUP)]
    Cleanup {
        /// Where everything is kept [default: as with up]
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
    },
    /// The parent of a container's process
    #[command(hide = true)]
    Shim {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Say why a Service does not work, step by step, and what mends it
    #[command(args_override_self = true, after_help = crate::explain::AFTER_HELP)]
    Explain(Box<ExplainFlags>),
    /// Say what happens to a packet on a Node, and why; send one and show what the kernel did to it
    #[command(args_override_self = true, after_help = examples::TRACE)]
    Trace(Box<TraceFlags>),
    /// Show objects: Services, EndpointSlices, Pods, Nodes and all others, as kubectl does
    #[command(after_help = crate::objects::get::EXAMPLES)]
    Get(Box<GetFlags>),
    /// Tell all about objects and what happened to them
    #[command(after_help = crate::objects::describe::EXAMPLES)]
    Describe(Box<DescribeFlags>),
    /// Make objects what files say
    #[command(after_help = crate::objects::apply::EXAMPLES)]
    Apply(Box<ApplyFlags>),
    /// Delete objects, and wait until they are gone
    #[command(after_help = crate::objects::delete::EXAMPLES)]
    Delete(Box<DeleteFlags>),
    /// Show objects as they change
    #[command(after_help = crate::objects::watch::EXAMPLES)]
    Watch(Box<WatchFlags>),
    /// Show what happened
    #[command(after_help = crate::objects::events::EXAMPLES)]
    Events(Box<EventsFlags>),
    /// Show what became of a Service, its endpoints and its Pods, newest first; or what was there at a time
    #[command(after_help = crate::history::EXAMPLES)]
    History(Box<HistoryFlags>),
    /// Show what is different now from what was some time ago
    #[command(after_help = crate::history::difference::EXAMPLES)]
    Diff(Box<DiffFlags>),
    /// Show the environment variables of a Pod's container: those of Services and its own
    #[command(args_override_self = true, after_help = examples::ENV)]
    Env(Box<EnvFlags>),
    /// Run a command as a Pod: with an address, names, probes and an orderly end
    #[command(args_override_self = true, after_help = examples::RUN)]
    Run(Box<RunFlags>),
    /// Show Pods
    #[command(after_help = examples::PS)]
    Ps(PsFlags),
    /// Show what a Pod has said
    #[command(after_help = examples::LOGS)]
    Logs(LogsFlags),
    /// Run a command beside a Pod's process
    #[command(after_help = examples::EXEC)]
    Exec(ExecFlags),
    /// End Pods: no new connections first, then the process
    #[command(after_help = examples::STOP)]
    Stop(StopFlags),
    /// Load images for Pods of this machine from files; list and remove them
    #[command(after_help = examples::IMAGE)]
    Image(ImageFlags),
    /// Make a process, VM or foreign host an endpoint of a Service, checked and drained, while this program runs
    #[command(args_override_self = true, after_help = examples::REGISTER)]
    Register(Box<RegisterFlags>),
    /// Copy the store of a data directory into a file
    #[command(after_help = examples::BACKUP)]
    Backup {
        /// Where the copy goes
        file: PathBuf,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Make the store of a data directory from a copy
    #[command(after_help = examples::RESTORE)]
    Restore {
        /// The copy
        file: PathBuf,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Print what lets a shell complete commands and options
    #[command(after_help = examples::COMPLETION)]
    Completion(CompletionFlags),
    /// Print or write manual pages
    #[command(after_help = examples::MAN)]
    Man(ManFlags),
    /// Show the version
    #[command(after_help = examples::VERSION)]
    Version,
}
