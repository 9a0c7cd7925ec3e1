//! The program as people read it: virtual servers much as `ipvsadm -Ln` shows them, then the tables.

use std::fmt;
use std::net::SocketAddr;

use super::model::{Affinity, At, Program, Server};
use super::{LINK, TABLE};
use crate::nft;

/// `10.96.0.10:80/TCP` or `mark 0xf6000001 of IPv4`
impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Address { ip, protocol, port } => write!(f, "{}/{protocol}", SocketAddr::new(*ip, *port)),
            At::Mark { family, mark } => write!(f, "mark {mark:#010x} of {family}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ip in &self.addresses {
            writeln!(f, "{LINK} {ip}")?;
        }
        self.servers.iter().try_for_each(|(at, server)| write_server(f, at, server))?;
        // The tables of this mode have another name.
        let [theirs, ours] = [nft::TABLE, TABLE].map(|name| format!(" {name} {{\n"));
        f.write_str(&self.filter.to_string().replace(&theirs, &ours))
    }
}

fn write_server(f: &mut fmt::Formatter<'_>, at: &At, server: &Server) -> fmt::Result {
    let balance = &server.balance;
    write!(f, "{at} {} ", balance.scheduler)?;
    match at {
        At::Mark { .. } => write!(f, "{} ", balance.protocol)?,
        At::Address { .. } => {}
    }
    match balance.affinity {
        Some(Affinity::Remembered(seconds)) => writeln!(f, "persistent {seconds}")?,
        Some(Affinity::Hashed(_)) => writeln!(f, "by client")?,
        None => writeln!(f)?,
    }
    server.endpoints.iter().try_for_each(|(to, weight)| writeln!(f, "  -> {to} weight {weight}"))
}
