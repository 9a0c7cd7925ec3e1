//! Sets of addresses and ports for rules of iptables, by the `ipset` program: only what IPVS mode asks of them.

use crate::error::Error;
use crate::iptables::{complaint, run};

/// A set's name, type and members, as `ipset` writes them: `10.96.0.10,tcp:80`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpSet {
    /// Its name, of at most 31 bytes.
    pub name: String,
    /// What a member is, such as `hash:ip,port` or `bitmap:port`, with the options of `create`.
    pub kind: String,
    /// The members.
    pub members: Vec<String>,
}

/// Makes the sets hold exactly these members, all in one run: each is filled beside the old one and then takes its
/// place, so that no packet sees it half full.
pub fn replace(sets: &[IpSet]) -> Result<(), Error> {
    restore(sets.iter().map(script).collect())
}

/// Adds and deletes members; what is there or gone already is fine.
pub fn change(set: &str, add: &[String], delete: &[String]) -> Result<(), Error> {
    let added = add.iter().map(|member| format!("add {set} {member} -exist\n"));
    let deleted = delete.iter().map(|member| format!("del {set} {member} -exist\n"));
    restore(deleted.chain(added).collect())
}

/// Deletes a set; an error while a rule uses it.
pub fn destroy(set: &str) -> Result<(), Error> {
    restore(format!("destroy {set}\n"))
}

/// The names of all sets.
pub fn names() -> Result<Vec<String>, Error> {
    let output = run("ipset", &["list", "-name"], None)?;
    if !output.status.success() {
        return Err(complaint("ipset".into(), &output));
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

fn script(set: &IpSet) -> String {
    let (name, kind) = (&set.name, &set.kind);
    let beside = format!("{}~", name.get(..name.len().min(30)).unwrap_or(name));
    let mut text = format!("create {name} {kind} -exist\ncreate {beside} {kind} -exist\nflush {beside}\n");
    for member in &set.members {
        text.push_str(&format!("add {beside} {member} -exist\n"));
    }
    text.push_str(&format!("swap {beside} {name}\ndestroy {beside}\n"));
    text
}

fn restore(script: String) -> Result<(), Error> {
    let output = run("ipset", &["restore"], Some(script))?;
    if output.status.success() { Ok(()) } else { Err(complaint("ipset".into(), &output)) }
}

#[cfg(test)]
mod tests {
    use super::{IpSet, script};

    #[test]
    fn a_set_is_filled_beside_the_old_one() {
        let set =
            IpSet { name: "FL-VIP".into(), kind: "hash:ip,port".into(), members: vec!["10.96.0.10,tcp:80".into()] };
        assert_eq!(
            script(&set),
            "create FL-VIP hash:ip,port -exist\ncreate FL-VIP~ hash:ip,port -exist\nflush FL-VIP~\n\
             add FL-VIP~ 10.96.0.10,tcp:80 -exist\nswap FL-VIP~ FL-VIP\ndestroy FL-VIP~\n"
        );
    }
}
