//! The kernel parameters mode IPVS needs.

use fairlead_kernel::sysctl;

use crate::settings::Ipvs;
use crate::{Error, settings};

/// What is set whatever the settings say.
const NEEDED: [(&str, &str); 4] = [
    // Answers of endpoints pass through here.
    ("net.ipv4.ip_forward", "1"),
    // Without it nothing that IPVS sends on can be masqueraded.
    ("net.ipv4.vs.conntrack", "1"),
    // A connection to an endpoint that is gone ends, instead of its packets being lost.
    ("net.ipv4.vs.expire_nodest_conn", "1"),
    // A client stays with its endpoint only as long as that takes new connections.
    ("net.ipv4.vs.expire_quiescent_template", "1"),
];

/// What keeps the Node quiet about addresses of the link, which other Nodes have too.
const STRICT_ARP: [(&str, &str); 2] = [("net.ipv4.conf.all.arp_ignore", "1"), ("net.ipv4.conf.all.arp_announce", "2")];

/// What a client that uses a port again meets. Since Linux 5.9 a connection of its own, at once; before, only after a second.
const REUSE: &str = "net.ipv4.vs.conn_reuse_mode";

/// Sets parameters that are set otherwise, and says so.
pub(super) fn set(settings: &settings::Ipvs) -> Result<(), Error> {
    for (name, value) in wanted(settings, &sysctl::read("kernel.osrelease").unwrap_or_default()) {
        if let Some(before) = sysctl::ensure(name, value)? {
            tracing::info!("kernel parameter {name} was {before} and is {value} now");
        }
    }
    Ok(())
}

fn wanted(settings: &Ipvs, release: &str) -> Vec<(&'static str, &'static str)> {
    let mut wanted = NEEDED.to_vec();
    wanted.push((REUSE, if is_before(release, (5, 9)) { "0" } else { "1" }));
    wanted.extend(STRICT_ARP.into_iter().filter(|_| settings.strict_arp));
    wanted
}

/// Whether a kernel is older than that. One that does not say is not.
fn is_before(release: &str, than: (u32, u32)) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor) < than,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_used_again_as_the_kernel_can_do_it() {
        let strict = Ipvs { strict_arp: true, ..Ipvs::default() };
        for (settings, release, reuse, count) in [
            (&Ipvs::default(), "4.19.0-27-amd64", "0", 5),
            (&Ipvs::default(), "5.8.18", "0", 5),
            (&Ipvs::default(), "5.10.0-8-amd64", "1", 5),
            (&strict, "6.1.0-32-cloud-amd64", "1", 7),
            (&Ipvs::default(), "unknown", "1", 5),
        ] {
            let wanted = wanted(settings, release);
            assert!(wanted.contains(&(REUSE, reuse)), "{release}: {wanted:?}");
            assert_eq!(wanted.len(), count, "{release}: {wanted:?}");
        }
    }
}
