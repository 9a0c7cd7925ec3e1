//! What happens when somebody else writes rules: what is ours is put right, what is theirs is left alone, and connections that
//! have nothing to do with it never fail.

use std::time::{Duration, Instant};

use super::lab::{CLIENTS, ENDPOINTS, LIMIT, Lab, STICKY, WEB, lab, tool};

/// How soon tables and chains are back: looked at each second.
const SOON: Duration = Duration::from_secs(3);
/// How often everything is counted here.
const PERIOD: &str = "--iptables-sync-period=2s";

/// The rules as a proxy makes them at first, in an order that does not depend on history.
fn rules(lab: &Lab, mode: &str) -> String {
    match mode {
        "iptables" => sorted(&tool(&lab.node, "iptables-save")),
        _ => sorted(&lab.ruleset()),
    }
}

fn sorted(text: &str) -> String {
    let known = |line: &&str| !line.starts_with('#') && !line.starts_with(':');
    let mut lines: Vec<&str> = text.lines().map(str::trim).filter(known).collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// Somebody runs a command; the rules are as before within some time, and Services answer.
fn check(test: &str, mode: &str, table: &[(&str, Duration)]) {
    let Some(lab) = lab(test) else { return };
    let running = lab.start(mode, &[PERIOD]);
    let before = rules(&lab, mode);
    for (command, within) in table {
        command.split("; ").for_each(|command| drop(tool(&lab.node, command)));
        let began = Instant::now();
        assert_ne!(rules(&lab, mode), before, "{command}");
        running.wait(command, || rules(&lab, mode) == before);
        assert!(began.elapsed() < *within, "{command}: mended only after {:?}", began.elapsed());
        assert!(lab.who(WEB, CLIENTS[0]).is_ok(), "{WEB} after {command}");
    }
    // Only now: what is remembered of a client is in the rules.
    assert!(lab.who(STICKY, CLIENTS[0]).is_ok());
}

#[test]
fn mode_nftables_mends_its_tables() {
    check(
        "mode_nftables_mends_its_tables",
        "nftables",
        &[
            ("nft flush ruleset", SOON),
            ("nft delete table ip fairlead", SOON),
            ("nft delete table ip6 fairlead", SOON),
            ("nft flush table ip fairlead", SOON + SOON),
            ("nft flush map ip fairlead frontends", SOON + SOON),
            ("nft flush map ip fairlead members", SOON + SOON),
        ],
    );
}

#[test]
fn mode_userspace_mends_its_tables() {
    check(
        "mode_userspace_mends_its_tables",
        "userspace",
        &[("nft flush ruleset", SOON), ("nft flush map ip fairlead frontends", SOON + SOON)],
    );
}

#[test]
fn mode_iptables_mends_its_chains() {
    check(
        "mode_iptables_mends_its_chains",
        "iptables",
        &[
            ("iptables -t nat -F FAIRLEAD-SERVICES", SOON + SOON),
            ("iptables -t nat -F PREROUTING", SOON + SOON),
            ("iptables -t nat -F; iptables -t nat -X", SOON + SOON),
            ("nft flush ruleset", SOON + SOON),
        ],
    );
}

#[test]
fn rules_that_others_write_all_the_time_disturb_nobody() {
    let Some(lab) = lab("rules_that_others_write_all_the_time_disturb_nobody") else { return };
    let running = lab.start("nftables", &[PERIOD]);
    let end = Instant::now() + Duration::from_secs(6);
    let others = || {
        let mut round = 0;
        while Instant::now() < end {
            round += 1;
            tool(&lab.node, "nft add table ip others");
            tool(&lab.node, "nft add chain ip others c { type filter hook forward priority 3 ; }");
            tool(&lab.node, &format!("nft add rule ip others c tcp dport {} drop", 20_000 + round % 1000));
            tool(&lab.node, "nft delete table ip others");
        }
    };
    let clients = |client: u8| {
        let (mut done, mut failed) = (0, Vec::new());
        while Instant::now() < end {
            match lab.who(WEB, client) {
                Ok(endpoint) => assert!(ENDPOINTS.contains(&endpoint)),
                Err(error) => failed.push(error),
            }
            done += 1;
        }
        assert!(done > 50 && failed.is_empty(), "{} of {done} connections failed: {failed:?}", failed.len());
    };
    std::thread::scope(|scope| {
        scope.spawn(others);
        CLIENTS[..4].iter().for_each(|client| drop(scope.spawn(|| clients(*client))));
    });
    assert!(!running.log().contains("putting it right"), "nothing of ours was changed:\n{}", running.log());
}

#[test]
fn two_proxies_on_one_node_come_to_rest() {
    let Some(lab) = lab("two_proxies_on_one_node_come_to_rest") else { return };
    let first = lab.start("nftables", &[PERIOD]);
    let second = lab.spawn("nftables", &[PERIOD, "--manifests", &lab.objects().display().to_string()]);
    let end = Instant::now() + LIMIT;
    let mut quiet = Instant::now();
    let mut rules = lab.ruleset();
    while quiet.elapsed() < Duration::from_secs(5) {
        assert!(Instant::now() < end, "they go on:\n{}\n{}", first.log(), second.log());
        lab.who(WEB, CLIENTS[0]).unwrap();
        let now = lab.ruleset();
        if now != rules {
            (rules, quiet) = (now, Instant::now());
        }
    }
}
