//! The program: reads the command line, and does what it says.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use cli::{Cli, Command};
use config::{Control, Environment, Proxy, Role};

mod cli;
mod config;
mod env;
mod gates;
mod logs;
mod trace;
mod wire;

/// The API server makes and drops many small pieces of memory; the system's allocator spends a fifth of a request on that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "fairlead: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let environment = Environment::read();
    match cli.command {
        Command::Up(flags) => serve(config::load(*flags, Role::Up, &environment)?),
        Command::Server(flags) => serve(config::load(*flags, Role::Server, &environment)?),
        Command::Control(flags) => {
            let control = Control::resolve(&flags)?;
            logs::start(control.log_format, control.log_level);
            threads()?.block_on(wire::control::run(control))
        }
        Command::Proxy(flags) => {
            // It runs on every Node. Without it only memory is lost.
            let _ = fairlead_kernel::process::use_small_pages();
            let proxy = Proxy::resolve(&flags)?;
            logs::start(proxy.log_format, proxy.log_level);
            threads()?.block_on(wire::proxy::run(proxy))
        }
        Command::Cleanup => wire::proxy::cleanup(),
        Command::Trace(flags) => std::process::exit(threads()?.block_on(trace::run(&flags))),
        Command::Env(flags) => threads()?.block_on(env::run(&flags)),
        Command::Backup { file, flags } => {
            let config = config::load(*flags, Role::Server, &environment)?;
            threads()?.block_on(wire::backup(&config, &file))
        }
        Command::Restore { file, flags } => wire::restore(&config::load(*flags, Role::Server, &environment)?, &file),
        Command::Version => Ok(writeln!(std::io::stdout(), "fairlead {}", env!("CARGO_PKG_VERSION"))?),
    }
}

fn serve(config: config::Config) -> anyhow::Result<()> {
    logs::start(config.log_format, config.log_level);
    threads()?.block_on(wire::run(config))
}

fn threads() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting threads")
}
