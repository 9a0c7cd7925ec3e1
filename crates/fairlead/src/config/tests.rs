//! Tables of options: what is understood, what is refused and in which words.

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

fn flags(arguments: &[&str]) -> Flags {
    let all = ["fairlead", "server"].iter().chain(arguments);
    match Cli::try_parse_from(all).expect("arguments that can be read").command {
        Command::Server(flags) => *flags,
        other => panic!("not a server: {other:?}"),
    }
}

fn environment() -> Environment {
    Environment {
        home: Some("/home/ann".into()),
        state_home: Some("/home/ann/.local/state".into()),
        ..Environment::default()
    }
}

fn config(arguments: &[&str]) -> anyhow::Result<Config> {
    load(flags(arguments), Role::Server, &environment())
}

#[test]
fn pods_get_accounts_where_every_namespace_has_one() {
    let given = |arguments: &[&str]| config(arguments).expect("good flags").service_accounts;
    assert!(load(Flags::default(), Role::Up, &environment()).expect("defaults").service_accounts);
    // `*` leaves serviceaccount-controller out, and without it no namespace has an account.
    assert!(!given(&[]) && !given(&["--controllers=*"]));
    assert!(given(&["--controllers=*,serviceaccount-controller"]));
    assert!(given(&["--enable-admission-plugins=ServiceAccount"]));
    assert!(!given(&["--controllers=serviceaccount-controller", "--disable-admission-plugins=ServiceAccount"]));
}

#[test]
fn the_defaults_are_those_of_the_documents() {
    let config = config(&[]).expect("defaults");
    assert_eq!(config.bind_address.to_string(), "127.0.0.1");
    assert_eq!(config.secure_port, 6443);
    assert_eq!(config.data_dir, PathBuf::from("/home/ann/.local/state/fairlead"));
    let ranges: Vec<String> = config.service_ranges.iter().map(ToString::to_string).collect();
    assert_eq!(ranges, ["10.96.0.0/16", "fd00:96::/108"]);
    assert_eq!(config.node_ports, 30000..=32767);
    assert_eq!(config.store, Store::Embedded);
    assert_eq!(config.authorization, Authorization::Rbac);
    assert_eq!(config.anonymous, Anonymous::Health);
    assert_eq!(config.issuers, ["https://kubernetes.default.svc.cluster.local"]);
    assert_eq!(config.request_timeout, Duration::from_secs(60));
    assert!(config.audit.is_none() && !config.gates.on("ServiceTopology") && config.gates.on("SCTPSupport"));
    let root = Environment { root: true, ..environment() };
    assert_eq!(
        load(Flags::default(), Role::Server, &root).expect("defaults").data_dir,
        PathBuf::from("/var/lib/fairlead")
    );
}

#[test]
fn flags_are_read_as_kube_apiserver_writes_them() {
    let config = config(&[
        "--anonymous-auth=true",
        "--secure-port=0",
        "--bind-address",
        "::1",
        "--service-cluster-ip-range=10.0.0.5/16",
        "--service-node-port-range=30000+99",
        "--authorization-mode=Node,RBAC",
        "--feature-gates=ServiceTopology=true,SCTPSupport=true",
        "--runtime-config=api/all=true,discovery.k8s.io/v1beta1=true",
        "--enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs",
        "--disable-admission-plugins=NamespaceLifecycle,ServiceAccount",
        "--external-ip-range=192.0.2.0/24,2001:db8::/32",
        "--etcd-servers=http://127.0.0.1:2379",
        "--service-account-issuer=https://a",
        "--service-account-issuer=https://b",
        "--tls-san=one,two",
        "--tls-san=three",
        "--audit-log-path=/tmp/audit.log",
        "--audit-log-maxsize=7",
        "--max-requests-inflight=5",
        "--request-timeout=1m30s",
        "--controllers=",
        "--v=4",
        "--log-format=json",
    ])
    .expect("good flags");
    assert_eq!(config.anonymous, Anonymous::Everywhere);
    assert_eq!((config.secure_port, config.bind_address.to_string().as_str()), (0, "::1"));
    assert_eq!(config.service_ranges[0].to_string(), "10.0.0.0/16");
    assert_eq!(config.node_ports, 30000..=30099);
    assert!(config.gates.on("ServiceTopology"));
    let versions = [("api/all".to_owned(), true), ("discovery.k8s.io/v1beta1".to_owned(), true)];
    assert_eq!(config.runtime_config, versions);
    assert_eq!(
        (config.external_ips, config.admission_disabled),
        (fairlead_server::ExternalIps::Denied, vec!["NamespaceLifecycle".to_owned()])
    );
    assert_eq!(config.external_ip_ranges.len(), 2);
    assert!(matches!(&config.store, Store::Etcd(etcd) if etcd.prefix == "/registry"));
    assert_eq!(config.issuers, ["https://a", "https://b"]);
    assert_eq!(config.tls_sans, ["one", "two", "three"]);
    assert_eq!(config.audit.expect("a log").max_size, 7 << 20);
    assert_eq!(config.in_flight.reading, 5);
    assert_eq!(config.request_timeout, Duration::from_secs(90));
    assert_eq!((config.log_level, config.log_format), (LevelFilter::DEBUG, LogFormat::Json));
}

#[test]
fn booleans_stand_alone_or_with_a_value() {
    for (argument, expected) in [
        ("--anonymous-auth", Anonymous::Everywhere),
        ("--anonymous-auth=1", Anonymous::Everywhere),
        ("--anonymous-auth=false", Anonymous::Nowhere),
    ] {
        assert_eq!(config(&[argument]).expect("a boolean").anonymous, expected, "{argument}");
    }
}

#[test]
fn what_is_wrong_is_said_with_the_flag() {
    let table: &[(&[&str], &str)] = &[
        (&["--secure-port=x"], "invalid argument \"x\" for \"--secure-port\" flag: invalid digit found in string"),
        (&["--bind-address=here"], "invalid argument \"here\" for \"--bind-address\" flag: invalid IP address syntax"),
        (
            &["--service-cluster-ip-range=10.0.0.0"],
            "invalid argument \"10.0.0.0\" for \"--service-cluster-ip-range\" flag: invalid IP address syntax",
        ),
        (
            &["--service-cluster-ip-range=10.0.0.0/16,10.1.0.0/16"],
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
        ),
        (
            &["--service-cluster-ip-range=10.0.0.0/16,fd00::/108,fd01::/108"],
            "--service-cluster-ip-range must not contain more than two entries",
        ),
        (
            &["--service-cluster-ip-range=10.0.0.0/8"],
            "invalid argument \"10.0.0.0/8\" for \"--service-cluster-ip-range\" flag: the prefix length must be between 12 and 30",
        ),
        (
            &["--service-node-port-range=40000-30000"],
            "invalid argument \"40000-30000\" for \"--service-node-port-range\" flag: the last port is below the first",
        ),
        (
            &["--service-node-port-range=60000+9999"],
            "invalid argument \"60000+9999\" for \"--service-node-port-range\" flag: the last port is above 65535",
        ),
        (
            &["--service-node-port-range=0-1"],
            "invalid argument \"0-1\" for \"--service-node-port-range\" flag: port 0 cannot be given to a Service",
        ),
        (
            &["--feature-gates=SCTPSupport=false"],
            "invalid argument \"SCTPSupport=false\" for \"--feature-gates\" flag: cannot set feature gate SCTPSupport to false, \
             feature is locked to true",
        ),
        (
            &["--feature-gates=Nonsense=true"],
            "invalid argument \"Nonsense=true\" for \"--feature-gates\" flag: unrecognized feature gate: Nonsense",
        ),
        (
            &["--feature-gates=ServiceTopology"],
            "invalid argument \"ServiceTopology\" for \"--feature-gates\" flag: missing bool value for ServiceTopology",
        ),
        (
            &["--runtime-config=x=true"],
            "invalid argument \"x=true\" for \"--runtime-config\" flag: want group/version=true or group/version=false",
        ),
        (
            &["--authorization-mode=Webhook"],
            "invalid argument \"Webhook\" for \"--authorization-mode\" flag: want RBAC, AlwaysAllow, or Node beside RBAC",
        ),
        (
            &["--authorization-mode=Node"],
            "invalid argument \"Node\" for \"--authorization-mode\" flag: Node needs RBAC too",
        ),
        (&["--enable-admission-plugins=Foo"], "enable-admission-plugins plugin \"Foo\" is unknown"),
        (
            &["--enable-admission-plugins=PodSecurity", "--disable-admission-plugins=PodSecurity"],
            "[PodSecurity] in enable-admission-plugins and disable-admission-plugins overlapped",
        ),
        (&["--tls-cert-file=a"], "--tls-cert-file needs --tls-private-key-file too"),
        (&["--etcd-cafile=a"], "--etcd-prefix, --etcd-cafile, --etcd-certfile and --etcd-keyfile need --etcd-servers"),
        (
            &["--etcd-servers=a:1"],
            "invalid argument \"a:1\" for \"--etcd-servers\" flag: want a URL that begins with http:// or https://",
        ),
        (&["--store=memory", "--etcd-servers=http://a:1"], "--store and --etcd-servers cannot be used together"),
        (&["--store=disk"], "invalid argument \"disk\" for \"--store\" flag: want embedded or memory"),
        (
            &["--request-timeout=soon"],
            "invalid argument \"soon\" for \"--request-timeout\" flag: want a duration such as 30s or 1m30s",
        ),
        (
            &["--controllers=endpoints"],
            "invalid argument \"endpoints\" for \"--controllers\" flag: there is no controller \"endpoints\"; there are \
             daemonset-controller, deployment-controller, endpoints-controller, endpointslice-controller, endpointslice-health-controller, \
             endpointslice-mirroring-controller, garbage-collector-controller, namespace-controller, node-ipam-controller, \
             node-lifecycle-controller, pod-garbage-collector-controller, replicaset-controller, \
             replicationcontroller-controller, root-ca-certificate-publisher-controller, scheduler, serviceaccount-controller, service-cidr-controller, statefulset-controller, and * \
             for all but daemonset-controller, deployment-controller, node-ipam-controller, replicaset-controller, replicationcontroller-controller, root-ca-certificate-publisher-controller, \
             scheduler, serviceaccount-controller and statefulset-controller",
        ),
        (
            &["--max-endpoints-per-slice=1001"],
            "invalid argument \"1001\" for \"--max-endpoints-per-slice\" flag: want a number from 1 to 1000",
        ),
        (
            &["--node-monitor-grace-period=1ms"],
            "invalid argument \"1ms\" for \"--node-monitor-grace-period\" flag: want at least 1s",
        ),
        (
            &["--log-level=loud"],
            "invalid argument \"loud\" for \"--log-level\" flag: want error, warn, info, debug, trace or a number",
        ),
        (&["--anonymous-auth=maybe"], "invalid argument \"maybe\" for \"--anonymous-auth\" flag: want true or false"),
    ];
    for (arguments, message) in table {
        let found = config(arguments).expect_err(&format!("{arguments:?}")).to_string();
        assert_eq!(found, *message, "{arguments:?}");
    }
}

#[test]
fn an_unknown_flag_is_refused() {
    assert!(Cli::try_parse_from(["fairlead", "server", "--nonsense=1"]).is_err());
}

#[test]
fn a_file_says_the_same_as_flags_and_flags_win() {
    let file = "secure-port: 7443\nbind-address: 0.0.0.0\nanonymous-auth: false\nfeature-gates:\n  ServiceTopology: true\n\
                service-cluster-ip-range: [10.0.0.0/16, 'fd00:10::/108']\nrequest-timeout: 30s\n";
    let merged = flags(&["--secure-port=1"]).or(parse_file(file).expect("a good file"));
    let config = resolve(&merged, Role::Server, &environment()).expect("good values");
    assert_eq!((config.secure_port, config.bind_address.to_string().as_str()), (1, "0.0.0.0"));
    assert_eq!((config.anonymous, config.gates.on("ServiceTopology")), (Anonymous::Nowhere, true));
    assert_eq!((config.service_ranges.len(), config.request_timeout), (2, Duration::from_secs(30)));
}

#[test]
fn a_mistake_in_a_file_names_its_line() {
    let table = [
        ("secure-port: 1\n\nbind-adress: x\n", "line 3", "bind-adress"),
        ("# first\nsecure-port: 1\nsecure_port: 2\n", "line 3", "secure_port"),
        ("secure-port: 1\nsecure-port: 2\n", "line 2", "secure-port"),
        ("secure-port:\n  - [1]\n", "line 2", ""),
        ("a: b: c\n", "line 1", ""),
    ];
    for (text, line, key) in table {
        let message = parse_file(text).expect_err(text).to_string();
        assert!(message.contains(line) && message.contains(key), "{text:?}: {message}");
    }
    let message = parse_file("secure-port: 1\nport: 2\n").expect_err("an unknown key").to_string();
    assert_eq!(message, "line 2: unknown key `port`");
    assert_eq!(parse_file("# nothing\n\n").expect("an empty file"), Flags::default());
}

#[test]
fn the_config_file_is_looked_for_in_two_places() {
    let dir = tempfile::tempdir().expect("a directory");
    let (etc, own) = (dir.path().join("etc"), dir.path().join("own"));
    for (place, port) in [(&own, 2), (&etc, 1)] {
        std::fs::create_dir_all(place.join("fairlead")).expect("a directory");
        let environment = Environment { etc: etc.clone(), config_home: Some(own.clone()), ..environment() };
        std::fs::write(place.join(CONFIG_FILE), format!("secure-port: {port}\n")).expect("a file");
        assert_eq!(load(Flags::default(), Role::Server, &environment).expect("a file").secure_port, port);
    }
    let missing = config(&["--config=/nowhere/config.yaml"]).expect_err("no file");
    assert_eq!(missing.to_string(), "config file /nowhere/config.yaml");
}

#[test]
fn every_gate_is_listed_once_in_order() {
    let names: Vec<&str> = crate::gates::GATES.iter().map(|gate| gate.name).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(names, sorted);
}
