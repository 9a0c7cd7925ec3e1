//! How Pods reach what is outside the cluster: nobody out there knows the way back to a Pod, so what leaves has the address of
//! the Node. A table of our own in nftables, made anew whenever the ranges change.

use fairlead_kernel::Error;
use fairlead_kernel::nft::{Batch, Chain, Connection, Expr, Family, Hook, NatFlags, Reg, Rule, Table, Verdict};
use ipnet::IpNet;

/// The name of the table.
const TABLE: &str = "fairlead-pods";
const CHAIN: &str = "nat-postrouting";
/// Where source addresses are translated.
const SRCNAT: i32 = 100;
/// Where an address is compared.
const ADDRESS: Reg = Reg(1);

/// Lets Pods of `own` ranges out, with their own addresses wherever `cluster` ranges are.
pub fn set(own: &[IpNet], cluster: &[IpNet]) -> Result<(), Error> {
    let mut batch = Batch::new();
    for family in [Family::Ip, Family::Ip6] {
        let ours = |range: &&IpNet| range.addr().is_ipv4() == (family == Family::Ip);
        let rules = rules(own.iter().filter(ours), &cluster.iter().filter(ours).collect::<Vec<_>>());
        replace(&mut batch, family, &rules);
    }
    Connection::open()?.commit(batch, None)
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
