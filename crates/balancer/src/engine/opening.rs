//! The first moments of a connection: who is it, and in what does it come wrapped?
//!
//! ```text
//! accepted --> in the ranges? --> PROXY header, from trusted fronts alone --> TLS taken off --> tcp | http
//! ```

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use ipnet::IpNet;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use super::context::Phase;
use super::listener::{Local, Opened};
use super::secure;
use super::sources::Source;
use crate::engine::secure::TlsFacts;
use crate::proxy_header::{self, Header};
use crate::serving::{Ends, Serving};
use crate::spec::Speaks;
use crate::tcp::{self, stranger::Stranger};

/// Begins to serve a connection that was accepted at an address.
pub(super) fn begin(local: &Rc<Local>, stream: TcpStream, peer: SocketAddr, at: SocketAddr) {
    let serving = local.shared.current.get();
    let listener = &serving.listener;
    // Only a front that is trusted is asked for a header; who else sends one is refused.
    let front = contains(&serving.trusted, peer.ip());
    let fronted = listener.accept_proxy && front;
    if !is_ready(&serving) || (!fronted && !is_allowed(&serving, peer.ip())) {
        local.counters().refused.add(1);
        // If it fails the connection ends in the ordinary way.
        let _ = stream.set_zero_linger();
        return;
    }
    let thread = &local.thread;
    // A front speaks for many clients.
    let source = match front {
        true => Source::front(thread.quotas.source_backends),
        false => thread.sources.enter(peer.ip(), thread.quotas.source_backends),
    };
    if source.is_limited() && source.connections.get() > thread.quotas.source_connections {
        thread.sources.leave(&source);
        local.counters().refused.add(1);
        let _ = stream.set_zero_linger();
        return;
    }
    let opened = local.open(source);
    let ends = Ends { client: peer, local: at, peer };
    let wrapped = fronted || serving.tls.is_some() || serving.reencrypt.is_some();
    if !wrapped && listener.speaks == Speaks::Bytes && !listener.accept_proxy {
        // The usual case has a task of its own, which is much smaller than the one for all cases.
        spawn_local(carry(stream, ends, serving, opened));
    } else if !fronted && serving.tls.is_none() && listener.speaks != Speaks::Bytes {
        spawn_local(web(stream, ends, opened));
    } else {
        spawn_local(open(stream, ends, serving, opened, fronted));
    }
}

async fn carry(stream: TcpStream, ends: Ends, serving: Arc<Serving>, opened: Opened) {
    tcp::serve(stream, ends, serving, opened.context.clone()).await;
}

async fn web(stream: TcpStream, ends: Ends, opened: Opened) {
    let context = opened.context.clone();
    until_over(crate::http::serve(stream, ends, None, context.current().clone(), context), &opened).await;
}

async fn open(stream: TcpStream, ends: Ends, serving: Arc<Serving>, opened: Opened, fronted: bool) {
    let context = opened.context.clone();
    let limit = context.thread().options().opening;
    let opening = opened.begin_opening();
    let unwrapped = tokio::select! {
        biased;
        unwrapped = tokio::time::timeout(limit, unwrap(stream, ends, &serving, &opened, fronted)) => unwrapped.ok(),
        // Newer ones need its place.
        () = poll_fn(|cx| context.poll_phase(Phase::Over, cx)) => None,
    };
    drop(opening);
    let Some(unwrapped) = unwrapped else { return context.counters().slow.add(1) };
    let (client, ends) = match unwrapped {
        Some(unwrapped) => unwrapped,
        None => return,
    };
    match (client, serving.listener.speaks) {
        (Client::Plain(stream), Speaks::Bytes) if serving.listener.accept_proxy && !fronted => {
            let stranger = Stranger::new(stream, context.clone());
            tcp::serve_secured(stranger, ends, None, serving, context).await;
        }
        (Client::Plain(stream), Speaks::Bytes) if serving.reencrypt.is_none() => {
            tcp::serve(stream, ends, serving, context).await;
        }
        (Client::Plain(stream), Speaks::Bytes) => tcp::serve_secured(stream, ends, None, serving, context).await,
        (Client::Secured(stream, tls), Speaks::Bytes) => {
            tcp::serve_secured(*stream, ends, Some(tls), serving, context).await;
        }
        (Client::Plain(stream), _) => {
            drop(serving);
            let served = crate::http::serve(stream, ends, None, context.current().clone(), context.clone());
            until_over(Box::pin(served), &opened).await;
        }
        (Client::Secured(stream, tls), _) => {
            drop(serving);
            let served = crate::http::serve(*stream, ends, Some(tls), context.current().clone(), context.clone());
            until_over(Box::pin(served), &opened).await;
        }
    }
}

/// What a client's connection is once what had to come first has come.
enum Client {
    Plain(TcpStream),
    Secured(Box<secure::ClientStream>, TlsFacts),
}

/// Takes off what a connection is wrapped in; `None`: it is not to be served.
async fn unwrap(
    mut stream: TcpStream,
    mut ends: Ends,
    serving: &Arc<Serving>,
    opened: &Opened,
    fronted: bool,
) -> Option<(Client, Ends)> {
    let counters = opened.context.counters();
    if fronted {
        match read_header(&mut stream).await {
            Ok(Header::Proxied { client, local }) => ends = Ends { client, local, ..ends },
            Ok(Header::Own) => {}
            Err(_) => {
                counters.bad_proxy_headers.add(1);
                return None;
            }
        }
        opened.attribute(ends.client.ip());
        // The front itself may come, or whoever it comes for is allowed.
        if ends.client != ends.peer && !is_allowed(serving, ends.client.ip()) {
            counters.refused.add(1);
            return None;
        }
    }
    let Some(tls) = &serving.tls else { return Some((Client::Plain(stream), ends)) };
    match secure::accept(tls, stream).await {
        Ok((stream, facts)) => Some((Client::Secured(Box::new(stream), facts), ends)),
        Err(error) => {
            tracing::debug!(client = %ends.client, %error, "a TLS handshake failed");
            counters.bad_handshakes.add(1);
            None
        }
    }
}

/// Reads a PROXY header and not a byte more.
async fn read_header(stream: &mut TcpStream) -> io::Result<Header> {
    let mut bytes = vec![0; proxy_header::LONGEST];
    let mut filled = 0;
    loop {
        let seen = stream.peek(&mut bytes[filled..]).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match proxy_header::parse(&bytes[..filled + seen]) {
            Ok(Some((header, length))) => {
                stream.read_exact(&mut bytes[filled..length]).await?;
                return Ok(header);
            }
            // All that is there is part of the header.
            Ok(None) => {
                stream.read_exact(&mut bytes[filled..filled + seen]).await?;
                filled += seen;
            }
            Err(malformed) => return Err(io::Error::new(io::ErrorKind::InvalidData, malformed)),
        }
    }
}

/// Serves until that is done, or its time is over.
async fn until_over(served: impl Future<Output = ()>, opened: &Opened) {
    tokio::select! {
        biased;
        () = served => {}
        () = poll_fn(|cx| opened.context.poll_phase(Phase::Over, cx)) => opened.context.counters().ended.add(1),
    }
}

/// Whether what is to be secret is: a listener whose certificate is not there yet must not speak in the clear.
fn is_ready(serving: &Serving) -> bool {
    let listener = &serving.listener;
    (listener.tls.is_none() || serving.tls.is_some()) && (!listener.reencrypt || serving.reencrypt.is_some())
}

fn is_allowed(serving: &Serving, client: IpAddr) -> bool {
    serving.sources.as_ref().is_none_or(|ranges| contains(ranges, client))
}

fn contains(ranges: &[IpNet], ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ranges.iter().any(|range| range.contains(&ip))
}
