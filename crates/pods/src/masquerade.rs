//! How do Pods reach other networks? Under the address of their Node: nobody out there knows the way back to theirs.

use std::net::IpAddr;

use fairlead_kernel::Error;
use fairlead_kernel::nft::{Batch, Chain, CmpOp, Connection, Expr, Family, Hook, NatFlags, Reg, Rule, Table};
use ipnet::IpNet;

/// The name of our tables, one in each family.
const TABLE: &str = "fairlead-pods";
const CHAIN: &str = "postrouting";
/// Where others translate sources too.
const SOURCES: i32 = 100;

/// Translates what Pods of this Node send to anybody who is no Pod.
pub(crate) fn install(own: &[IpNet], pods: &[IpNet]) -> Result<(), Error> {
    let mut batch = removal(&mut Connection::open()?)?.0;
    for family in [Family::Ip, Family::Ip6] {
        let table = Table::new(family, TABLE);
        let of_family = |range: &&IpNet| range.addr().is_ipv4() == (family == Family::Ip);
        let inside: Vec<&IpNet> = own.iter().chain(pods).filter(of_family).collect();
        if !own.iter().any(|range| of_family(&range)) {
            continue;
        }
        batch.add_table(&table);
        batch.add_chain(&table, &Chain::nat(CHAIN, Hook::Postrouting, SOURCES));
        for range in own.iter().filter(of_family) {
            batch.add_rule(&table, &Rule::new(CHAIN, rule(range, &inside)).comment("Pods to other networks"));
        }
    }
    Connection::open()?.commit(batch, None)
}

/// Removes it, and says what that was.
pub(crate) fn remove() -> Result<Vec<String>, Error> {
    let mut connection = Connection::open()?;
    let (batch, removed) = removal(&mut connection)?;
    connection.commit(batch, None)?;
    Ok(removed)
}

fn removal(connection: &mut Connection) -> Result<(Batch, Vec<String>), Error> {
    let tables = connection.tables()?.into_iter().map(|listed| listed.value);
    let ours: Vec<Table> = tables.filter(|table| table.name == TABLE).collect();
    let mut batch = Batch::new();
    ours.iter().for_each(|table| batch.delete_table(table));
    Ok((batch, ours.iter().map(|table| format!("table {} of nftables", table.name)).collect()))
}

/// From this range, and to none of those.
fn rule(from: &IpNet, not_to: &[&IpNet]) -> Vec<Expr> {
    let (source, destination) = if from.addr().is_ipv4() { (12, 16) } else { (8, 24) };
    let mut rule = is(source, from, CmpOp::Equal);
    not_to.iter().for_each(|range| rule.extend(is(destination, range, CmpOp::NotEqual)));
    rule.push(Expr::Masquerade { flags: NatFlags { fully_random: true, ..NatFlags::default() } });
    rule
}

fn is(offset: u32, range: &IpNet, op: CmpOp) -> Vec<Expr> {
    let (mask, network) = (bytes(range.netmask()), bytes(range.network()));
    let xor = vec![0; mask.len()];
    let length = u32::try_from(mask.len()).expect("an address has at most 16 bytes");
    vec![
        Expr::network(offset, length, Reg(0)),
        Expr::Bitwise { sreg: Reg(0), dreg: Reg(0), mask, xor },
        Expr::Cmp { sreg: Reg(0), op, data: network },
    ]
}

fn bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
