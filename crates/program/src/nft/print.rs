//! A program as `nft list ruleset` prints it.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use fairlead_plan::Family;

use super::expr::{CT_DNAT, CmpOp, CtKey, End, Expr, Found, MetaKey, PayloadBase, Reg, Reject};
use super::key::{DataType, Key};
use super::model::{
    Base, Chain, ChainType, Element, Hook, Program, Rule, Set, TABLE, Table, Value, ValueType, Verdict,
};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tables.iter().try_for_each(|(family, table)| print_table(f, *family, table))
    }
}

fn print_table(f: &mut fmt::Formatter<'_>, family: Family, table: &Table) -> fmt::Result {
    let name = match family {
        Family::V4 => "ip",
        Family::V6 => "ip6",
    };
    writeln!(f, "table {name} {TABLE} {{")?;
    for (set, elements) in table.sets.values() {
        print_set(f, set, elements)?;
    }
    for chain in table.chains.values() {
        print_chain(f, family, chain, table)?;
    }
    writeln!(f, "}}")
}

fn print_set(f: &mut fmt::Formatter<'_>, set: &Set, elements: &BTreeMap<Key, Element>) -> fmt::Result {
    let (what, value) = match &set.value {
        ValueType::Nothing => ("set", String::new()),
        ValueType::Verdict => ("map", " : verdict".to_owned()),
        ValueType::Data(types) => ("map", format!(" : {}", type_name(types))),
    };
    writeln!(f, "\t{what} {} {{\n\t\ttype {}{value}", set.name, type_name(&set.key))?;
    if let Some(size) = set.size {
        writeln!(f, "\t\tsize {size}")?;
    }
    let flags = [(set.dynamic, "dynamic,timeout"), (set.interval, "interval")];
    if let Some((_, flags)) = flags.iter().find(|(set, _)| *set) {
        writeln!(f, "\t\tflags {flags}")?;
    }
    if set.counter {
        writeln!(f, "\t\tcounter")?;
    }
    if !set.comment.is_empty() {
        writeln!(f, "\t\tcomment \"{}\"", set.comment)?;
    }
    if !elements.is_empty() {
        let elements: Vec<String> = elements.values().map(|element| print_element(element, set)).collect();
        writeln!(f, "\t\telements = {{ {} }}", elements.join(",\n\t\t\t     "))?;
    }
    writeln!(f, "\t}}\n")
}

fn type_name(types: &[DataType]) -> String {
    types.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(" . ")
}

fn print_element(element: &Element, set: &Set) -> String {
    let mut text = match element.key_end {
        None => key(&element.key, &set.key),
        Some(end) => range(&element.key, &end, &set.key),
    };
    if set.counter {
        text.push_str(" counter packets 0 bytes 0");
    }
    match (&element.value, &set.value) {
        (Some(Value::Data(data)), ValueType::Data(types)) => text + " : " + &key(data, types),
        (Some(Value::Verdict(it)), _) => text + " : " + &verdict(it),
        _ => text,
    }
}

/// A key, by its types.
pub(crate) fn key(key: &Key, types: &[DataType]) -> String {
    key.parts(types).map(|(part, bytes)| part.print(bytes)).collect::<Vec<_>>().join(" . ")
}

fn range(first: &Key, last: &Key, types: &[DataType]) -> String {
    let ends = first.parts(types).zip(last.parts(types));
    let parts = ends.map(|((part, first), (_, last))| match prefix_length(first, last) {
        length if length as usize == first.len() * 8 => part.print(first),
        length => format!("{}/{length}", part.print(first)),
    });
    parts.collect::<Vec<_>>().join(" . ")
}

/// All our ranges are prefixes: how many bits both ends share.
fn prefix_length(first: &[u8], last: &[u8]) -> u32 {
    let mut length = 0;
    for (one, other) in first.iter().zip(last) {
        let same = (one ^ other).leading_zeros();
        length += same;
        if same < 8 {
            break;
        }
    }
    length
}

/// A verdict.
pub(crate) fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Accept => "accept".to_owned(),
        Verdict::Drop => "drop".to_owned(),
        Verdict::Return => "return".to_owned(),
        Verdict::Jump(chain) => format!("jump {chain}"),
        Verdict::Goto(chain) => format!("goto {chain}"),
    }
}

fn print_chain(f: &mut fmt::Formatter<'_>, family: Family, chain: &Chain, table: &Table) -> fmt::Result {
    writeln!(f, "\tchain {} {{", chain.name)?;
    if let Some(Base { kind, hook, priority }) = chain.base {
        let kind = match kind {
            ChainType::Filter => "filter",
            ChainType::Nat => "nat",
        };
        let hook = match hook {
            Hook::Prerouting => "prerouting",
            Hook::Output => "output",
            Hook::Postrouting => "postrouting",
        };
        writeln!(f, "\t\ttype {kind} hook {hook} priority {priority}; policy accept;")?;
    }
    for rule in &chain.rules {
        writeln!(f, "\t\t{}", print_rule(rule, family, table))?;
    }
    writeln!(f, "\t}}\n")
}

/// A rule in one line. Registers hold text.
pub(crate) fn print_rule(rule: &Rule, family: Family, table: &Table) -> String {
    let mut printer = Printer { family, table, registers: BTreeMap::new(), parts: Vec::new() };
    rule.exprs.iter().for_each(|expr| printer.expr(expr));
    let mut text = printer.parts.join(" ");
    if !rule.comment.is_empty() {
        let _ = write!(text, " comment \"{}\"", rule.comment);
    }
    text
}

struct Printer<'a> {
    family: Family,
    table: &'a Table,
    registers: BTreeMap<u8, String>,
    parts: Vec<String>,
}

impl Printer<'_> {
    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Meta { key, dreg } => self.load(*dreg, meta(*key)),
            Expr::MetaSet { key, sreg } => self.say(format!("{} set {}", meta(*key), self.text(*sreg))),
            Expr::Payload { base, offset, dreg, .. } => self.load(*dreg, self.payload(*base, *offset)),
            Expr::Cmp { sreg, op, data } => self.cmp(*sreg, *op, data),
            Expr::Bitwise { sreg, dreg, mask, xor } => {
                let text = self.bitwise(&self.text(*sreg), mask, xor);
                self.load(*dreg, text);
            }
            Expr::Lookup { set, sreg, found, invert } => self.lookup(set, *sreg, *found, *invert),
            Expr::Verdict(it) => self.say(verdict(it)),
            Expr::Dnat { addr, .. } => self.say(format!("dnat to {}", self.text(*addr))),
            Expr::Masquerade => self.say("masquerade fully-random"),
            Expr::Numgen { modulus, dreg } => self.load(*dreg, format!("numgen random mod {modulus}")),
            Expr::Update { map, key, data, timeout } => {
                let key = self.key_text(map, *key);
                self.say(format!("update @{map} {{ {key} timeout {timeout}s : {} }}", self.text(*data)));
            }
            Expr::Forget { map, key, data } => {
                let key = self.key_text(map, *key);
                self.say(format!("delete @{map} {{ {key} : {} }}", self.text(*data)));
            }
            Expr::Ct { key: CtKey::State, dreg } => self.load(*dreg, "ct state"),
            Expr::Ct { key: CtKey::Status, dreg } => self.load(*dreg, "ct status"),
            Expr::Addrtype { of: End::Source, dreg } => self.load(*dreg, "fib saddr type"),
            Expr::Addrtype { of: End::Destination, dreg } => self.load(*dreg, "fib daddr type"),
            Expr::Reject(Reject::TcpReset) => self.say("reject with tcp reset"),
            Expr::Reject(Reject::PortUnreachable) => self.say("reject"),
        }
    }

    fn say(&mut self, text: impl Into<String>) {
        self.parts.push(text.into());
    }

    fn load(&mut self, reg: Reg, text: impl Into<String>) {
        self.registers.insert(reg.0, text.into());
    }

    fn text(&self, reg: Reg) -> String {
        self.registers.get(&reg.0).cloned().unwrap_or_default()
    }

    fn payload(&self, base: PayloadBase, offset: u32) -> &'static str {
        match (self.family, base, offset) {
            (_, PayloadBase::Transport, _) => "th dport",
            (Family::V4, _, 12) => "ip saddr",
            (Family::V4, ..) => "ip daddr",
            (Family::V6, _, 8) => "ip6 saddr",
            (Family::V6, ..) => "ip6 daddr",
        }
    }

    fn bitwise(&self, of: &str, mask: &Key, xor: &Key) -> String {
        match (mask.as_number(), xor.as_number()) {
            (Some(_), Some(0)) if of.starts_with("ip ") => {
                format!("{of} & {}", DataType::Ipv4Addr.print(mask.as_bytes()))
            }
            (Some(CT_DNAT | 8), Some(0)) if of.starts_with("ct ") => of.to_owned(),
            (Some(mask), Some(0)) => format!("{of} & 0x{mask:08x}"),
            (Some(u32::MAX), Some(xor)) => format!("{of} ^ 0x{xor:08x}"),
            (Some(mask), Some(xor)) if mask == !xor => format!("{of} | 0x{xor:08x}"),
            (Some(mask), Some(xor)) => format!("{of} & 0x{mask:08x} ^ 0x{xor:08x}"),
            _ => of.to_owned(),
        }
    }

    fn cmp(&mut self, sreg: Reg, op: CmpOp, data: &Key) {
        let left = self.text(sreg);
        let not = match op {
            CmpOp::NotEqual => "!= ",
            CmpOp::Equal if left.contains(" & ") => "== ",
            CmpOp::Equal => "",
        };
        let right = match left.as_str() {
            "ct state" => return self.say("ct state new"),
            "ct status" => return self.say("ct status dnat"),
            "fib saddr type" | "fib daddr type" => "local".to_owned(),
            "meta l4proto" => DataType::InetProto.print(data.as_bytes()),
            "iifname" => interface(data.as_bytes()),
            _ if left.starts_with("ip ") => DataType::Ipv4Addr.print(data.as_bytes()),
            _ if left.starts_with("ip6 ") => DataType::Ipv6Addr.print(data.as_bytes()),
            _ => data.as_number().map(|number| format!("0x{number:08x}")).unwrap_or_default(),
        };
        self.say(format!("{left} {not}{right}"));
    }

    /// The text of a key: of as many registers as it takes.
    fn key_text(&self, set: &str, reg: Reg) -> String {
        let Some((set, _)) = self.table.sets.get(set) else { return self.text(reg) };
        let mut at = reg.0;
        let mut parts = Vec::new();
        for part in &set.key {
            parts.push(self.text(Reg(at)));
            at += part.len().div_ceil(4) as u8;
        }
        parts.join(" . ")
    }

    fn lookup(&mut self, set: &str, sreg: Reg, found: Found, invert: bool) {
        let key = self.key_text(set, sreg);
        match found {
            Found::Continue if invert => self.say(format!("{key} != @{set}")),
            Found::Continue => self.say(format!("{key} @{set}")),
            Found::Verdict => self.say(format!("{key} vmap @{set}")),
            Found::Load(dreg) => self.load(dreg, format!("{key} map @{set}")),
        }
    }
}

fn meta(key: MetaKey) -> &'static str {
    match key {
        MetaKey::Mark => "meta mark",
        MetaKey::Iifname => "iifname",
        MetaKey::L4proto => "meta l4proto",
    }
}

fn interface(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let star = if end == bytes.len() { "*" } else { "" };
    format!("\"{}{star}\"", String::from_utf8_lossy(&bytes[..end]))
}
