//! The streams of this process, joined with those of another: a terminal, or plain input and output.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use anyhow::Context;
use fairlead_cluster::streams::{Attached, Ended, Input, Output};
use fairlead_kernel::terminal::{Raw, size};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};

/// How much is carried at once.
const PART: usize = 16 << 10;

/// Whether somebody sits here.
pub(super) fn is_one() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Carries everything both ways until the other has ended; how it ended, if somebody says.
pub(super) async fn join(mut attached: Attached, tty: bool) -> anyhow::Result<Option<Ended>> {
    let _raw = tty.then(|| Raw::enter(std::io::stdin().as_fd())).transpose().context("setting up the terminal")?;
    let sizes = tokio::spawn(sizes(attached.resizer()));
    let (stdin, ended) = (attached.stdin(), attached.ended());
    let (stdout, stderr) = (attached.stdout(), attached.stderr());
    let input = tokio::spawn(carry_input(stdin));
    let (mut out, mut err) = (tokio::io::stdout(), tokio::io::stderr());
    let shown = tokio::try_join!(show_if(stdout, &mut out), show_if(stderr, &mut err));
    input.abort();
    sizes.abort();
    shown.context("printing")?;
    Ok(ended.await)
}

/// Carries input to the other and nothing back.
pub(super) async fn feed(mut attached: Attached) {
    let stdin = attached.stdin();
    let (stdout, stderr) = (attached.stdout(), attached.stderr());
    let mut nowhere = (tokio::io::sink(), tokio::io::sink());
    let carried = carry_input(stdin);
    // What it says is read so that it does not wait for us; it is shown from its log.
    let read = async { tokio::try_join!(show_if(stdout, &mut nowhere.0), show_if(stderr, &mut nowhere.1)) };
    let _ = tokio::join!(carried, read);
}

async fn show_if(from: Option<Input>, to: &mut (impl AsyncWrite + Unpin)) -> std::io::Result<()> {
    match from {
        Some(from) => show(from, to).await,
        None => Ok(()),
    }
}

/// Shows what comes until its end, at once.
pub(super) async fn show(mut from: Input, to: &mut (impl AsyncWrite + Unpin)) -> std::io::Result<()> {
    let mut part = vec![0; PART];
    loop {
        let read = from.read(&mut part).await?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&part[..read]).await?;
        to.flush().await?;
    }
}

async fn carry_input(to: Option<Output>) {
    let Some(mut to) = to else { return };
    let mut stdin = tokio::io::stdin();
    let mut part = vec![0; PART];
    while let Ok(read @ 1..) = stdin.read(&mut part).await {
        if to.write_all(&part[..read]).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    // The other may have ended before its input did.
    let _ = to.shutdown().await;
}

/// Tells the other how large the terminal is, whenever that changes.
async fn sizes<R: Future<Output = ()>>(resizer: Option<impl FnMut(u16, u16) -> R>) {
    let (Some(mut resize), Ok(mut changed)) = (resizer, signal(SignalKind::window_change())) else { return };
    loop {
        if let Some((columns, rows)) = size(std::io::stdout()) {
            resize(columns, rows).await;
        }
        if changed.recv().await.is_none() {
            return;
        }
    }
}
