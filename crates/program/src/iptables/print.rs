//! Steps as text for `iptables-restore --noflush`, and a whole program as the text that makes it.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use fairlead_plan::Family;

use super::model::{Match, Op, Place, Program, RejectKind, Rule, TableName, Target};

/// For how long a remark may be.
const LONGEST_COMMENT: usize = 200;

/// The text that takes steps, for each family that has any: for `iptables-restore` and for `ip6tables-restore`.
pub fn restore(ops: &[Op]) -> BTreeMap<Family, String> {
    let mut places: BTreeMap<Place, Vec<&Op>> = BTreeMap::new();
    ops.iter().for_each(|op| places.entry(op.place()).or_default().push(op));
    let mut texts: BTreeMap<Family, String> = BTreeMap::new();
    for ((family, table), ops) in places {
        let text = texts.entry(family).or_default();
        // Writing into a String does not fail.
        let _ = write_table(text, family, table, &ops);
    }
    texts
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, table) in &self.tables {
            let ops: Vec<Op> =
                table.iter().map(|(name, rules)| Op::Write(*place, name.clone(), rules.clone())).collect();
            write_table(f, place.0, place.1, &ops.iter().collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

/// A chain that is declared is emptied, so all chains that are written or go are declared first.
fn write_table(text: &mut dyn Write, family: Family, table: TableName, ops: &[&Op]) -> fmt::Result {
    let name = match table {
        TableName::Filter => "filter",
        TableName::Nat => "nat",
    };
    writeln!(text, "*{name}")?;
    for op in ops {
        if let Op::Write(_, chain, _) | Op::Remove(_, chain) = op {
            writeln!(text, ":{chain} - [0:0]")?;
        }
    }
    for op in ops {
        match op {
            Op::Write(_, chain, rules) => {
                for rule in rules {
                    writeln!(text, "-A {chain}{}", Printed(rule, family))?;
                }
            }
            Op::Delete(_, chain, rule) => writeln!(text, "-D {chain}{}", Printed(rule, family))?,
            Op::Insert(_, chain, rule) => writeln!(text, "-I {chain}{}", Printed(rule, family))?,
            Op::Remove(..) => {}
        }
    }
    for op in ops {
        if let Op::Remove(_, chain) = op {
            writeln!(text, "-X {chain}")?;
        }
    }
    writeln!(text, "COMMIT")
}

/// A rule with a blank before each part, for a family.
pub(crate) struct Printed<'a>(pub(crate) &'a Rule, pub(crate) Family);

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Printed(rule, family) = self;
        rule.matches.iter().try_for_each(|one| write_match(f, one))?;
        if !rule.comment.is_empty() {
            let plain = rule.comment.chars().filter(|char| !char.is_control() && !"\"\\'".contains(*char));
            write!(f, " -m comment --comment \"{}\"", plain.take(LONGEST_COMMENT).collect::<String>())?;
        }
        rule.target.as_ref().map_or(Ok(()), |target| write_target(f, target, *family))
    }
}

fn write_match(f: &mut fmt::Formatter<'_>, one: &Match) -> fmt::Result {
    match one {
        Match::Source(net) => write!(f, " -s {net}"),
        Match::Destination(net) => write!(f, " -d {net}"),
        Match::NotDestination(net) => write!(f, " ! -d {net}"),
        Match::Port(protocol, port) => {
            let protocol = protocol.as_str().to_ascii_lowercase();
            write!(f, " -p {protocol} -m {protocol} --dport {port}")
        }
        Match::Protocol(protocol) => write!(f, " -p {}", protocol.as_str().to_ascii_lowercase()),
        Match::Interface(name) => write!(f, " -i {name}"),
        Match::NotInterface(name) => write!(f, " ! -i {name}"),
        Match::SourceLocal => f.write_str(" -m addrtype --src-type LOCAL"),
        Match::DestinationLocal => f.write_str(" -m addrtype --dst-type LOCAL"),
        Match::Chance { weight, of } => {
            let probability = f64::from(*weight) / f64::from((*of).max(1));
            write!(f, " -m statistic --mode random --probability {probability:.10}")
        }
        Match::Recent(list, seconds) => write!(f, " -m recent --name {list} --rcheck --seconds {seconds} --reap"),
        Match::Remember(list) => write!(f, " -m recent --name {list} --set"),
        Match::Mark(mark) => write!(f, " -m mark --mark {mark:#x}/{mark:#x}"),
        Match::NotMark(mark) => write!(f, " -m mark ! --mark {mark:#x}/{mark:#x}"),
        Match::Translated => f.write_str(" -m conntrack --ctstate DNAT"),
        Match::New => f.write_str(" -m conntrack --ctstate NEW"),
        Match::Known => f.write_str(" -m conntrack --ctstate RELATED,ESTABLISHED"),
        Match::InvalidState => f.write_str(" -m conntrack --ctstate INVALID"),
    }
}

fn write_target(f: &mut fmt::Formatter<'_>, target: &Target, family: Family) -> fmt::Result {
    match (target, family) {
        (Target::Jump(chain), _) => write!(f, " -j {chain}"),
        (Target::Goto(chain), _) => write!(f, " -g {chain}"),
        (Target::Return, _) => f.write_str(" -j RETURN"),
        (Target::Accept, _) => f.write_str(" -j ACCEPT"),
        (Target::Drop, _) => f.write_str(" -j DROP"),
        (Target::Reject(RejectKind::TcpReset), _) => f.write_str(" -j REJECT --reject-with tcp-reset"),
        (Target::Reject(_), Family::V4) => f.write_str(" -j REJECT --reject-with icmp-port-unreachable"),
        (Target::Reject(_), Family::V6) => f.write_str(" -j REJECT --reject-with icmp6-port-unreachable"),
        (Target::Dnat(to), _) => write!(f, " -j DNAT --to-destination {to}"),
        (Target::Masquerade, _) => f.write_str(" -j MASQUERADE --random-fully"),
        (Target::SetMark(mark), _) => write!(f, " -j MARK --or-mark {mark:#x}"),
        (Target::FlipMark(mark), _) => write!(f, " -j MARK --xor-mark {mark:#x}"),
    }
}
