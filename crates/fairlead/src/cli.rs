//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::config::{BalancerFlags, ControlFlags, DnsFlags, Flags, JoinFlags, ProxyFlags};
use crate::env::EnvFlags;
use crate::lb::LbFlags;
use crate::pods::{ExecFlags, LogsFlags, PsFlags, RunFlags, StopFlags};
use crate::register::RegisterFlags;
use crate::trace::TraceFlags;

/// Kubernetes Services on plain machines: one binary, no containers.
#[derive(Debug, Parser)]
#[command(name = "fairlead", version, args_override_self = true, max_term_width = 120)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start everything on this machine
    #[command(args_override_self = true)]
    Up(Box<Flags>),
    /// Make this machine a Node of the cluster of a server elsewhere
    #[command(args_override_self = true)]
    Join(Box<JoinFlags>),
    /// Show what lets other machines join the server of this one
    Token {
        /// Where everything is kept [default: as with up]
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// Show the whole command to run there
        #[arg(long)]
        join_command: bool,
    },
    /// Start the API server alone
    #[command(args_override_self = true)]
    Server(Box<Flags>),
    /// Run controllers against a cluster: EndpointSlices, Endpoints, namespaces, garbage collection
    #[command(args_override_self = true)]
    Control(Box<ControlFlags>),
    /// Serve a cluster's Services on this machine, as kube-proxy does and with its options
    #[command(args_override_self = true)]
    Proxy(Box<ProxyFlags>),
    /// Answer questions about a cluster's names, as CoreDNS does and with its Corefile
    #[command(args_override_self = true)]
    Dns(Box<DnsFlags>),
    /// Serve a cluster's Services of type LoadBalancer: addresses from pools, announced on the LAN, as MetalLB does and more
    #[command(args_override_self = true)]
    Balancer(Box<BalancerFlags>),
    /// Show load balancers and how they do; take backends and Nodes out
    Lb(LbFlags),
    /// End all Pods of this machine and remove everything Fairlead put into its kernel
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
    /// Say what happens to a packet on a Node, and why; send one and show what the kernel did to it
    #[command(args_override_self = true, after_help = crate::trace::EXIT_CODES)]
    Trace(Box<TraceFlags>),
    /// Show the environment variables of a Pod's container: those of Services and its own
    #[command(args_override_self = true)]
    Env(Box<EnvFlags>),
    /// Run a command as a Pod: with an address, names, probes and an orderly end
    #[command(args_override_self = true)]
    Run(Box<RunFlags>),
    /// Show Pods
    Ps(PsFlags),
    /// Show what a Pod has said
    Logs(LogsFlags),
    /// Run a command beside a Pod's process
    Exec(ExecFlags),
    /// End Pods: no new connections first, then the process
    Stop(StopFlags),
    /// Make a process, VM or foreign host an endpoint of a Service, checked and drained, while this program runs
    #[command(args_override_self = true)]
    Register(Box<RegisterFlags>),
    /// Copy the store of a data directory into a file
    Backup {
        /// Where the copy goes
        file: PathBuf,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Make the store of a data directory from a copy
    Restore {
        /// The copy
        file: PathBuf,
        #[command(flatten)]
        flags: Box<Flags>,
    },
    /// Show the version
    Version,
}
