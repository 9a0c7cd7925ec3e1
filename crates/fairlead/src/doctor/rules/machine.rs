//! Is the rest of the machine fit: names, links, limits, disk, clock?

use super::super::facts::{Facts, Link};
use super::super::{Check, State};

const AREA: &str = "Machine";
/// The least space a store is comfortable with.
const LITTLE: u64 = 1 << 30;
/// Fewer open files than this are soon used up by connections.
const FEW_FILES: u64 = 4096;
/// How far the clock may be behind what was written, in seconds.
const SKEW: i64 = 60;

pub(super) fn check(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![controllers(facts), names(facts)];
    checks.extend(packets(facts));
    checks.extend(files(facts));
    checks.extend(data(facts));
    checks.extend(clock(facts));
    checks
}

fn controllers(facts: &Facts) -> Check {
    let missing: Vec<&str> =
        ["cpu", "memory"].into_iter().filter(|one| !facts.controllers.iter().any(|has| has == one)).collect();
    if missing.is_empty() {
        return Check::ok(AREA, "control groups (version 2) limit what Pods use");
    }
    let finding = format!("control groups of version 2 have no {}: limits of Pods do not hold", missing.join(" and "));
    Check::of(AREA, State::Warn, finding, &["boot with systemd.unified_cgroup_hierarchy=1"])
}

fn names(facts: &Facts) -> Check {
    if facts.nameservers.is_empty() {
        let finding = "/etc/resolv.conf names no server: names outside the cluster are not answered";
        return Check::of(
            AREA,
            State::Warn,
            finding,
            &["add a line `nameserver ADDRESS`, or name one to `fairlead dns`"],
        );
    }
    let servers: Vec<String> = facts.nameservers.iter().map(ToString::to_string).collect();
    Check::ok(AREA, format!("names outside the cluster are asked from {}", servers.join(", ")))
}

/// Packets of Pods that are larger than what leaves the machine are lost where nobody says so to the sender.
fn packets(facts: &Facts) -> Option<Check> {
    let least = facts.links.iter().filter(|link| link.outward).min_by_key(|link| link.mtu)?;
    let larger = |link: &&Link| link.name.starts_with("fl") && link.mtu > least.mtu;
    let link = facts.links.iter().find(larger)?;
    let finding = format!(
        "links of Pods take packets of {} bytes ({}), {} takes {}: large ones may be lost on the way",
        link.mtu, link.name, least.name, least.mtu
    );
    Some(Check::of(AREA, State::Warn, finding, &[&format!("ip link set {} mtu {}", link.name, least.mtu)]))
}

fn files(facts: &Facts) -> Option<Check> {
    let most = facts.open_files.filter(|most| *most < FEW_FILES)?;
    let finding = format!("a process may have {most} files open: each connection through a load balancer takes two");
    Some(Check::of(AREA, State::Warn, finding, &["ulimit -n 65536    # LimitNOFILE= in a unit of systemd"]))
}

fn data(facts: &Facts) -> Vec<Check> {
    let dir = &facts.data_dir;
    let path = dir.path.display();
    let mut checks = Vec::new();
    if let Some(mode) = dir.mode.filter(|mode| mode & 0o077 != 0) {
        let finding = format!("{path}, with the keys of the cluster, is open to others (mode {mode:o})");
        checks.push(Check::of(AREA, State::Bad, finding, &[&format!("chmod 700 {path}")]));
    }
    if let Some(free) = dir.free {
        let mebibytes = free >> 20;
        let finding = format!("{path} has {mebibytes} MiB of disk left");
        checks.push(match free < LITTLE {
            true => Check::of(AREA, State::Warn, finding, &["make room, or name another place with --data-dir"]),
            false => Check::ok(AREA, finding),
        });
    }
    checks
}

fn clock(facts: &Facts) -> Option<Check> {
    let ahead = facts.data_dir.written? - facts.now;
    if ahead <= SKEW {
        return None;
    }
    let finding = format!("the clock went back: {} was written {ahead} s from now", facts.data_dir.path.display());
    let remedy = ["set the clock, and keep it right (apt-get install systemd-timesyncd): certificates depend on it"];
    Some(Check::of(AREA, State::Bad, finding, &remedy))
}
