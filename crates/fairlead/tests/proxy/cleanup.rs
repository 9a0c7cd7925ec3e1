//! What `fairlead cleanup` leaves behind: nothing of ours, everything of others. And what a change of mode does.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use fairlead_testkit::need;

use super::lab::{FAIRLEAD, LIMIT, Lab, lab, tool, try_tool};

/// Everything of a network namespace that a proxy could have made, by who tells it.
const LOOKS: [&str; 14] = [
    "nft -s list ruleset",
    "ip -o link show",
    "ip -o address show",
    "ip route show table all",
    "ip -6 route show table all",
    "ip rule show",
    "ip -6 rule show",
    "ip maddress show",
    "iptables-legacy-save",
    "ip6tables-legacy-save",
    "iptables-nft-save",
    "ip6tables-nft-save",
    "ipset list",
    "ip -all netns",
];

/// What is there. A tool that is missing, or that the kernel does not answer, says the same each time.
fn look(lab: &Lab) -> BTreeMap<&'static str, String> {
    LOOKS.iter().map(|words| (*words, told(&try_tool(&lab.node, words).1))).collect()
}

/// Without comments, which have the time, and without what was counted.
fn told(text: &str) -> String {
    let line = |line: &str| {
        if line.starts_with(':') { line.split(" [").next().unwrap_or(line).to_owned() } else { line.to_owned() }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(line).collect::<Vec<_>>().join("\n")
}

/// What is there once nothing moves any more: addresses of IPv6 take their time.
fn settled(lab: &Lab) -> BTreeMap<&'static str, String> {
    let end = Instant::now() + LIMIT;
    let mut before = look(lab);
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(300));
        let now = look(lab);
        if now == before {
            return now;
        }
        before = now;
    }
    panic!("the namespace does not settle");
}

fn cleanup(lab: &Lab) -> String {
    let output = lab.node.run(|| Command::new(FAIRLEAD).arg("cleanup").output()).unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[derive(Clone, Copy, PartialEq)]
enum Others {
    None,
    Rules,
}

/// Rules of others, in places where ours will be, too.
fn add_others(lab: &Lab) {
    tool(&lab.node, "nft add table ip fairleading");
    tool(&lab.node, "nft add chain ip fairleading c { type filter hook input priority 5 ; }");
    tool(&lab.node, "nft add rule ip fairleading c tcp dport 7 counter accept");
    for program in ["iptables", "ip6tables"] {
        tool(&lab.node, &format!("{program} -t nat -N OTHERS"));
        tool(&lab.node, &format!("{program} -t nat -A OTHERS -p tcp --dport 9 -j ACCEPT"));
        tool(&lab.node, &format!("{program} -t nat -A PREROUTING -j OTHERS"));
        tool(&lab.node, &format!("{program} -A FORWARD -p udp --dport 9 -j DROP"));
    }
}

fn check(test: &str, mode: &str, others: Others) {
    let Some(lab) = lab(test) else { return };
    if others == Others::Rules {
        add_others(&lab);
    }
    let before = settled(&lab);
    let running = lab.start(mode, &[]);
    assert_ne!(look(&lab)[LOOKS[0]], before[LOOKS[0]], "mode {mode} has rules while it runs");
    match others {
        Others::None => running.stop(),
        Others::Rules => running.kill(),
    }
    let removed = cleanup(&lab);
    assert!(removed.contains("removed"), "{removed}");
    let after = settled(&lab);
    for words in LOOKS {
        assert_eq!(after[words], before[words], "mode {mode}: {words}");
    }
    assert!(cleanup(&lab).starts_with("Nothing of Fairlead"), "there is nothing to clean up the second time");
}

#[test]
fn cleanup_leaves_nothing_of_mode_nftables() {
    let test = "cleanup_leaves_nothing_of_mode_nftables";
    check(test, "nftables", Others::None);
    check(test, "nftables", Others::Rules);
}

#[test]
fn cleanup_leaves_nothing_of_mode_iptables() {
    let test = "cleanup_leaves_nothing_of_mode_iptables";
    check(test, "iptables", Others::None);
    check(test, "iptables", Others::Rules);
}

#[test]
fn cleanup_leaves_nothing_of_the_old_iptables() {
    let test = "cleanup_leaves_nothing_of_the_old_iptables";
    if !need(test, "iptables-legacy-restore") {
        return;
    }
    let Some(mut lab) = lab(test) else { return };
    lab.use_legacy_iptables();
    // Tables of the old interface stay for as long as their namespace: others had them before.
    for (program, table) in [("iptables", "nat"), ("iptables", "filter"), ("ip6tables", "nat"), ("ip6tables", "filter")]
    {
        tool(&lab.node, &format!("{program}-legacy -t {table} -A OUTPUT -p tcp --dport 9 -j ACCEPT"));
    }
    let before = settled(&lab);
    let running = lab.start("iptables", &[]);
    assert!(tool(&lab.node, "iptables-legacy-save").contains("-j FAIRLEAD-"), "it has rules while it runs");
    running.kill();
    cleanup(&lab);
    let after = settled(&lab);
    for words in LOOKS {
        assert_eq!(after[words], before[words], "{words}");
    }
}

#[test]
fn cleanup_leaves_nothing_of_mode_userspace() {
    let test = "cleanup_leaves_nothing_of_mode_userspace";
    check(test, "userspace", Others::None);
    check(test, "userspace", Others::Rules);
}

#[test]
fn a_mode_removes_what_another_left() {
    let Some(lab) = lab("a_mode_removes_what_another_left") else { return };
    add_others(&lab);
    let others = tool(&lab.node, "nft -s list table ip fairleading");
    for mode in ["nftables", "iptables", "userspace", "nftables", "userspace", "iptables", "nftables"] {
        let running = lab.start(mode, &[]);
        let (tables, chains) = (mode != "iptables", mode == "iptables");
        running.wait(&format!("mode {mode} has its rules and no others"), || {
            let rules = lab.ruleset();
            rules.contains("table ip fairlead {") == tables && rules.contains("FAIRLEAD-") == chains
        });
        running.kill();
    }
    assert_eq!(tool(&lab.node, "nft -s list table ip fairleading"), others);
    let left = tool(&lab.node, "iptables-save -t nat");
    assert!(left.contains("-A PREROUTING -j OTHERS") && left.contains("-A OTHERS -p tcp"), "{left}");
}
