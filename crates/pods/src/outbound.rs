//! How Pods reach what is outside the cluster: nobody out there knows the way back to a Pod, so
//! what leaves has the address of the Node. A table of our own in nftables, made anew whenever the
//! ranges change or another program has changed it.

use std::time::{Duration, Instant};

use fairlead_kernel::Error;
use fairlead_kernel::nft::{Batch, Chain, Connection, Expr, Family, Hook, NatFlags, Reg, Rule, Table, Verdict};
use ipnet::IpNet;
use tokio::sync::watch;

/// The name of the table.
const TABLE: &str = "fairlead-pods";
const CHAIN: &str = "nat-postrouting";
/// Where source addresses are translated.
const SRCNAT: i32 = 100;
/// Time between looks at the generation of the ruleset, as the proxy has it.
const LOOK: Duration = Duration::from_secs(1);
/// Where an address is compared.
const ADDRESS: Reg = Reg(1);

/// Lets Pods of `own` ranges out, with their own addresses wherever `cluster` ranges are.
pub fn set(own: &[IpNet], cluster: &[IpNet]) -> Result<(), Error> {
    let mut batch = Batch::new();
    for family in [Family::Ip, Family::Ip6] {
        replace(&mut batch, family, &rules_of(family, own, cluster));
    }
    Connection::open()?.commit(batch, None)
}

/// Ranges of Pods: those of this Node, and those of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    pub(crate) own: Vec<IpNet>,
    pub(crate) cluster: Vec<IpNet>,
}

/// Keeps the table as the newest ranges want it, and restores it within a second after another
/// program changed it. Until ranges are known the table is left alone.
pub(crate) async fn keep(mut wanted: watch::Receiver<Option<Ranges>>) {
    let mut known = None;
    let mut warnings = Warnings::default();
    loop {
        let ranges = wanted.borrow_and_update().clone();
        if wanted.has_changed().is_err() {
            return;
        }
        if let Some(ranges) = ranges {
            let before = known.take();
            let restored = before.is_some();
            known = match tokio::task::spawn_blocking(move || restore(&ranges, before)).await {
                Ok(Ok((generation, changed))) => {
                    if changed && restored {
                        warnings.warn("table fairlead-pods of nftables was changed by another program; it is restored");
                    }
                    Some(generation)
                }
                Ok(Err(error)) => {
                    warnings.warn(&format!("Pods cannot reach what is outside the cluster: {error}"));
                    None
                }
                // The thread panicked, which is logged by itself.
                Err(_) => None,
            };
        }
        tokio::select! {
            changed = wanted.changed() => match changed {
                // Whatever the kernel has is to be compared with other ranges now.
                Ok(()) => known = None,
                Err(_) => return,
            },
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Log lines about the table, at most one a minute.
#[derive(Debug, Default)]
struct Warnings {
    last: Option<Instant>,
    count: u64,
}

impl Warnings {
    fn warn(&mut self, what: &str) {
        self.count += 1;
        if self.last.is_none_or(|last| last.elapsed() >= Duration::from_secs(60)) {
            tracing::warn!(times = self.count, "{what}");
            self.last = Some(Instant::now());
            self.count = 0;
        }
    }
}

/// Makes the table as it should be, unless the ruleset has the generation of the last look. Returns
/// the generation that was looked at, and true if the table was not as it should be.
fn restore(ranges: &Ranges, known: Option<u32>) -> Result<(u32, bool), Error> {
    let mut connection = Connection::open()?;
    // Read before the table: a change between the two is seen at the next look.
    let generation = connection.generation()?;
    if known == Some(generation) || is_set(&mut connection, ranges)? {
        return Ok((generation, false));
    }
    set(&ranges.own, &ranges.cluster)?;
    Ok((generation, true))
}

/// Returns true if the kernel has just the rules that [`set`] makes.
fn is_set(connection: &mut Connection, ranges: &Ranges) -> Result<bool, Error> {
    let tables = connection.tables()?;
    for family in [Family::Ip, Family::Ip6] {
        let wanted = rules_of(family, &ranges.own, &ranges.cluster);
        let table =
            tables.iter().map(|listed| &listed.value).find(|table| table.family == family && table.name == TABLE);
        let there = match table {
            Some(table) => connection.rules(table)?.into_iter().map(|listed| listed.value.exprs).collect(),
            None => Vec::new(),
        };
        if table.is_some() == wanted.is_empty() || !there.iter().eq(wanted.iter().map(|rule| &rule.exprs)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the rules of a family.
fn rules_of(family: Family, own: &[IpNet], cluster: &[IpNet]) -> Vec<Rule> {
    let ours = |range: &&IpNet| range.addr().is_ipv4() == (family == Family::Ip);
    rules(own.iter().filter(ours), &cluster.iter().filter(ours).collect::<Vec<_>>())
}

/// Puts the table in the place of whatever of that name is there.
fn replace(batch: &mut Batch, family: Family, rules: &[Rule]) {
    let table = Table { comment: Some("Pods on their way out".to_owned()), ..Table::new(family, TABLE) };
    batch.add_table(&table);
    batch.delete_table(&table);
    if rules.is_empty() {
        return;
    }
    batch.add_table(&table);
    batch.add_chain(&table, &Chain::nat(CHAIN, Hook::Postrouting, SRCNAT));
    rules.iter().for_each(|rule| batch.add_rule(&table, rule));
}

fn rules<'a>(own: impl Iterator<Item = &'a IpNet>, cluster: &[&IpNet]) -> Vec<Rule> {
    let rule = |exprs: Vec<Expr>| Rule { chain: CHAIN.to_owned(), exprs, comment: None };
    own.flat_map(|range| {
        let inside = cluster.iter().map(|cluster| {
            let accept = [Expr::Verdict(Verdict::Accept)];
            [&is_in(range, End::Source)[..], &is_in(cluster, End::Destination), &accept].concat()
        });
        let masquerade = [Expr::Masquerade { flags: NatFlags::default() }];
        let outside = [&is_in(range, End::Source)[..], &masquerade].concat();
        inside.chain([outside]).map(rule).collect::<Vec<_>>()
    })
    .collect()
}

#[derive(Clone, Copy)]
enum End {
    Source,
    Destination,
}

/// Goes on only if an address of the packet is in the range.
fn is_in(range: &IpNet, end: End) -> [Expr; 3] {
    let (network, mask, offsets) = match range {
        IpNet::V4(range) => (range.network().octets().to_vec(), range.netmask().octets().to_vec(), [12, 16]),
        IpNet::V6(range) => (range.network().octets().to_vec(), range.netmask().octets().to_vec(), [8, 24]),
    };
    let offset = match end {
        End::Source => offsets[0],
        End::Destination => offsets[1],
    };
    let width = u32::try_from(network.len()).expect("an address has at most 16 bytes");
    let xor = vec![0; network.len()];
    [
        Expr::network(offset, width, ADDRESS),
        Expr::Bitwise { sreg: ADDRESS, dreg: ADDRESS, mask, xor },
        Expr::equal(ADDRESS, network),
    ]
}

/// Removes the table, and says which there were.
pub fn remove() -> Result<Vec<String>, Error> {
    let mut connection = Connection::open()?;
    let there: Vec<Table> =
        connection.tables()?.into_iter().map(|listed| listed.value).filter(|t| t.name == TABLE).collect();
    let mut batch = Batch::new();
    there.iter().for_each(|table| batch.delete_table(table));
    connection.commit(batch, None)?;
    let family = |table: &Table| if table.family == Family::Ip { "ip" } else { "ip6" };
    Ok(there.iter().map(|table| format!("table {} {TABLE} of nftables", family(table))).collect())
}
