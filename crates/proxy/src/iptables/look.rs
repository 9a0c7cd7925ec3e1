//! Where do the chains in the kernel lead a packet? Read from what `iptables-save` prints.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

use fairlead_kernel::iptables::Variant;
use fairlead_plan::{Family, FrontendKey};

use super::{PREFIX, table_name, tables, tool};
use crate::held::Presence;
use crate::{Error, FAMILIES};

/// Rules of our chains, without counters, by family and chain.
#[derive(Debug, Default)]
pub(crate) struct Chains(HashMap<(Family, String), Vec<String>>);

/// Our chains, as they are in the kernel.
pub(crate) fn chains() -> Result<Chains, Error> {
    let mut chains = Chains::default();
    for variant in [Variant::Legacy, Variant::Nft] {
        for family in FAMILIES {
            for table in tables::there(variant, family)? {
                // What is not installed has no rules.
                let Ok(text) = tool(variant, family).save(table_name(table)) else { continue };
                chains.read(family, &text);
            }
        }
    }
    Ok(chains)
}

impl Chains {
    /// Whether there are none of ours.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `[0:0] -A FAIRLEAD-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j FAIRLEAD-EXT-...`
    fn read(&mut self, family: Family, text: &str) {
        for line in text.lines() {
            let Some((_, rule)) = line.split_once("-A ") else { continue };
            let Some((chain, rest)) = rule.split_once(' ') else { continue };
            if chain.starts_with(PREFIX) {
                self.0.entry((family, chain.to_owned())).or_default().push(rest.to_owned());
            }
        }
    }

    pub(crate) fn presence(&self, key: &FrontendKey) -> Presence {
        let family = key.family();
        let chains: &[&str] = match key {
            FrontendKey::Address { .. } => &["FAIRLEAD-SERVICES", "FAIRLEAD-FILTER-SERVICES"],
            FrontendKey::NodePort { .. } => &["FAIRLEAD-NODEPORTS", "FAIRLEAD-FILTER-NODEPORTS"],
        };
        let rules = chains.iter().filter_map(|chain| self.0.get(&(family, (*chain).to_owned()))).flatten();
        let mut next: Vec<&str> = rules.filter(|rule| is_for(rule, key)).filter_map(|rule| target(rule)).collect();
        if next.is_empty() {
            return Presence::Absent;
        }
        let (mut seen, mut endpoints) = (BTreeSet::new(), BTreeSet::new());
        while let Some(chain) = next.pop() {
            if !seen.insert(chain) {
                continue;
            }
            for rule in self.0.get(&(family, chain.to_owned())).into_iter().flatten() {
                endpoints.extend(destination(rule));
                next.extend(target(rule).filter(|to| to.starts_with(PREFIX)));
            }
        }
        Presence::Leads(endpoints)
    }
}

fn is_for(rule: &str, key: &FrontendKey) -> bool {
    let words: Vec<&str> = rule.split(' ').collect();
    let has = |name: &str, value: &str| words.windows(2).any(|pair| pair == [name, value]);
    let length = if key.family() == Family::V4 { 32 } else { 128 };
    let addressed = match key {
        FrontendKey::Address { ip, .. } => has("-d", &format!("{ip}/{length}")),
        FrontendKey::NodePort { .. } => true,
    };
    addressed && has("-p", &key.protocol().as_str().to_lowercase()) && has("--dport", &key.port().to_string())
}

/// Where a rule goes on.
fn target(rule: &str) -> Option<&str> {
    let mut words = rule.split(' ');
    words.find(|word| ["-j", "-g"].contains(word))?;
    words.next()
}

fn destination(rule: &str) -> Option<SocketAddr> {
    let mut words = rule.split(' ');
    words.find(|word| *word == "--to-destination")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: &str = "*nat\n:FAIRLEAD-SERVICES - [0:0]\n\
        [0:0] -A FAIRLEAD-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j FAIRLEAD-EXT-A\n\
        [0:0] -A FAIRLEAD-NODEPORTS -p tcp -m tcp --dport 30080 -j FAIRLEAD-EXT-A\n\
        [0:0] -A FAIRLEAD-EXT-A -j FAIRLEAD-SVC-A\n\
        [0:0] -A FAIRLEAD-SVC-A -m statistic --mode random --probability 0.5 -j FAIRLEAD-SEP-1\n\
        [0:0] -A FAIRLEAD-SVC-A -j FAIRLEAD-SEP-2\n\
        [0:0] -A FAIRLEAD-SEP-1 -p tcp -m tcp -j DNAT --to-destination 10.244.0.5:8080\n\
        [0:0] -A FAIRLEAD-SEP-2 -p tcp -m tcp -j DNAT --to-destination 10.244.0.6:8080\n\
        [0:0] -A OTHER -d 10.96.0.11/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.0.1:1\n";

    #[test]
    fn chains_are_followed_to_their_endpoints() {
        let mut chains = Chains::default();
        chains.read(Family::V4, SAVED);
        let address = |ip: &str, port, protocol| FrontendKey::Address { ip: ip.parse().unwrap(), protocol, port };
        let node_port =
            |port| FrontendKey::NodePort { family: Family::V4, protocol: fairlead_plan::Protocol::Tcp, port };
        let both: BTreeSet<SocketAddr> = ["10.244.0.5:8080", "10.244.0.6:8080"].map(|at| at.parse().unwrap()).into();
        let cases = [
            (address("10.96.0.10", 80, fairlead_plan::Protocol::Tcp), Presence::Leads(both.clone())),
            (address("10.96.0.10", 80, fairlead_plan::Protocol::Udp), Presence::Absent),
            (address("10.96.0.10", 8, fairlead_plan::Protocol::Tcp), Presence::Absent),
            (address("10.96.0.11", 80, fairlead_plan::Protocol::Tcp), Presence::Absent),
            (node_port(30080), Presence::Leads(both)),
            (node_port(30081), Presence::Absent),
        ];
        for (key, expected) in cases {
            assert_eq!(chains.presence(&key), expected, "{key}");
        }
    }
}
