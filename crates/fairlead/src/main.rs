//! The program: reads the command line, and does what it says.

use std::cell::Cell;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;

use cli::{Cli, Command};
use config::{Balancer, Control, Dns, Environment, Join, Proxy, Role};

mod cli;
mod config;
mod doctor;
mod door;
mod env;
mod explain;
mod form;
mod gates;
mod history;
mod image;
mod lb;
mod logs;
mod objects;
mod page;
mod paint;
mod pods;
mod register;
mod shell;
mod status;
mod subject;
mod telemetry;
mod top;
mod trace;
mod ui;
mod wire;

/// The API server makes and drops many small pieces of memory; the system's allocator spends a fifth of a request on that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run(Cli::read()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// Returns the message of an error, then its causes. A cause that the text already ends with is not
/// repeated.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Says what went wrong, and what to do about it where that is known.
fn complain(error: &anyhow::Error) {
    if logs::are_for_programs() {
        return tracing::error!("{}", with_causes(error));
    }
    let paint = paint::Paint::stderr();
    let name = paint.tone(paint::Tone::Bad, "fairlead:");
    // Who does not read it cannot be told.
    let _ = writeln!(std::io::stderr(), "{name} {}", objects::table::harmless(&with_causes(error)));
    if let Some(advice) = door::advice(error) {
        let _ = writeln!(std::io::stderr(), "  help: {advice}");
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let environment = Environment::read();
    match cli.command {
        Command::Up(flags) => serve(config::load(*flags, Role::Up, &environment)?),
        Command::Server(flags) => serve(config::load(*flags, Role::Server, &environment)?),
        Command::Join(flags) => {
            // It runs on every Node.
            let _ = fairlead_kernel::process::use_small_pages();
            let join = Join::resolve(&flags, &environment)?;
            logs::start(join.log_format, join.log_level, environment.traces(None)?);
            threads()?.block_on(wire::join::run(join))
        }
        Command::Token { data_dir, join_command } => {
            let data_dir = data_dir.map_or_else(|| environment.data_dir(), Ok)?;
            wire::token::show(&data_dir, join_command)
        }
        Command::Control(flags) => {
            let control = Control::resolve(&flags)?;
            logs::start(control.log_format, control.log_level, environment.traces(None)?);
            threads()?.block_on(wire::control::run(control))
        }
        Command::Proxy(flags) => {
            // It runs on every Node. Without it only memory is lost.
            let _ = fairlead_kernel::process::use_small_pages();
            let proxy = Proxy::resolve(&flags)?;
            logs::start(proxy.log_format, proxy.log_level, environment.traces(None)?);
            threads()?.block_on(wire::proxy::run(proxy))
        }
        Command::Dns(flags) => {
            // It runs on every Node, too.
            let _ = fairlead_kernel::process::use_small_pages();
            let dns = Dns::resolve(&flags)?;
            logs::start(dns.log_format, dns.log_level, environment.traces(None)?);
            threads()?.block_on(wire::dns::run(dns))
        }
        Command::Balancer(flags) => {
            let balancer = Balancer::resolve(&flags)?;
            logs::start(balancer.log_format, balancer.log_level, environment.traces(None)?);
            threads()?.block_on(wire::balancer::run(balancer))
        }
        Command::Ui(flags) => threads()?.block_on(ui::link::run(&flags)),
        Command::Lb(flags) => threads()?.block_on(lb::run(flags)),
        Command::Status(flags) => std::process::exit(threads()?.block_on(status::run(&flags))),
        Command::Top(flags) => threads()?.block_on(top::run(&flags)),
        Command::Doctor(flags) => std::process::exit(threads()?.block_on(doctor::run(flags))),
        Command::Cleanup { data_dir } => {
            let data_dir = data_dir.map_or_else(|| environment.data_dir(), Ok)?;
            threads()?.block_on(wire::cleanup(&data_dir))
        }
        Command::Shim { arguments } => std::process::exit(fairlead_pods::shim::main(&arguments)),
        Command::Trace(flags) => std::process::exit(threads()?.block_on(trace::run(&flags))),
        Command::Get(flags) => threads()?.block_on(objects::get::run(*flags)),
        Command::Explain(flags) => std::process::exit(threads()?.block_on(explain::run(&flags))),
        Command::History(flags) => threads()?.block_on(history::run(&flags)),
        Command::Diff(flags) => std::process::exit(threads()?.block_on(history::difference::run(&flags))),
        Command::Describe(flags) => threads()?.block_on(objects::describe::run(*flags)),
        Command::Apply(flags) => threads()?.block_on(objects::apply::run(*flags)),
        Command::Delete(flags) => threads()?.block_on(objects::delete::run(*flags)),
        Command::Watch(flags) => threads()?.block_on(objects::watch::run(*flags)),
        Command::Events(flags) => threads()?.block_on(objects::events::run(*flags)),
        Command::Env(flags) => threads()?.block_on(env::run(&flags)),
        Command::Run(flags) => exit(threads()?.block_on(pods::run::run(*flags))?),
        Command::Ps(flags) => threads()?.block_on(pods::list::run(flags)),
        Command::Logs(flags) => threads()?.block_on(pods::logs::run(flags)),
        Command::Exec(flags) => exit(threads()?.block_on(pods::exec::run(flags))?),
        Command::Stop(flags) => threads()?.block_on(pods::stop::run(flags)),
        Command::Image(flags) => image::run(flags, &environment),
        Command::Register(flags) => std::process::exit(threads()?.block_on(wire::register(&flags))?),
        Command::Backup { file, flags } => {
            let config = config::load(*flags, Role::Server, &environment)?;
            threads()?.block_on(wire::backup(&config, &file))
        }
        Command::Restore { file, flags } => wire::restore(&config::load(*flags, Role::Server, &environment)?, &file),
        Command::Completion(flags) => shell::complete(&flags),
        Command::Man(flags) => shell::manual(&flags),
        Command::Version => Ok(writeln!(std::io::stdout(), "fairlead {}", env!("CARGO_PKG_VERSION"))?),
    }
}

/// Ends with the code of a command that ran elsewhere. Input that is still waited for does not keep us.
fn exit(code: i32) -> anyhow::Result<()> {
    std::process::exit(code)
}

fn serve(config: config::Config) -> anyhow::Result<()> {
    logs::start(config.log_format, config.log_level, config.traces.clone());
    threads()?.block_on(wire::run(config))
}

fn threads() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().on_thread_park(return_free_memory).build().context("starting threads")
}

/// Time between two visits of a thread's free memory.
const MEMORY_INTERVAL: Duration = Duration::from_secs(5);

/// Gives memory back that other threads have freed, every few seconds, when this thread has nothing
/// else to do.
fn return_free_memory() {
    thread_local! {
        static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    let now = Instant::now();
    if LAST.get().is_none_or(|last| now.duration_since(last) >= MEMORY_INTERVAL) {
        LAST.set(Some(now));
        fairlead_kernel::process::return_free_memory();
    }
}
