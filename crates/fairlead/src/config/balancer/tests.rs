use clap::Parser;
use fairlead_balancer::run::Provisioning;

use super::{Balancer, BalancerFlags};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    flags: BalancerFlags,
}

fn resolve(line: &str) -> anyhow::Result<Balancer> {
    let words = ["balancer", "--node-name", "n1"].into_iter().chain(line.split_whitespace());
    Balancer::resolve(&Cli::try_parse_from(words)?.flags)
}

#[test]
fn flags_and_file_are_one_configuration() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "pools:\n- {name: lan, addresses: [192.0.2.0/28]}\ndefault: false\n").unwrap();
    let line = format!(
        "--balancer-config {} --pool 198.51.100.0/28,2001:db8::/120 --pool more=198.51.100.64/28 --internal-pool 10.9.0.0/24",
        file.path().display()
    );
    let settings = resolve(&line).unwrap().settings;
    let pools: Vec<(&str, usize)> =
        settings.config.pools.iter().map(|pool| (pool.name.as_str(), pool.ranges.len())).collect();
    assert_eq!(pools, [("lan", 1), ("default", 2), ("more", 1), ("internal", 1)]);
    assert_eq!((settings.class.as_str(), settings.provisioning), ("fairlead.dev/lb", Provisioning::Elected));
    assert!(!settings.config.default);
}

#[test]
fn a_mistake_names_the_flag() {
    let check = |line: &str, expected: &str| {
        let error = format!("{:#}", resolve(line).unwrap_err());
        assert!(error.contains(expected), "{line}: {error}");
    };
    check("--pool many", "invalid argument \"many\" for \"--pool\" flag");
    check("--internal-pool 192.0.2.9-192.0.2.1", "\"--internal-pool\" flag");
    check("--pool a=192.0.2.0/28 --pool b=192.0.2.1", "have addresses in common");
    check("--balancer-config nowhere.yaml", "--balancer-config: nowhere.yaml");
    check("--leader-elect=perhaps", "want true or false");
    check("--balancer-bind-address here", "\"--balancer-bind-address\" flag");
}

#[test]
fn others_may_be_the_leader_and_the_class_can_be_another() {
    let settings =
        resolve("--leader-elect=false --load-balancer-class example.com/lb --balancer-bind-address=").unwrap();
    assert_eq!(settings.settings.provisioning, Provisioning::Here);
    assert_eq!((settings.settings.class.as_str(), settings.settings.page), ("example.com/lb", None));
}
