//! Tables of options and files: what is understood, what is refused and in which words.

use std::time::Duration;

use clap::Parser;
use fairlead_plan::NodePortAddresses;
use fairlead_proxy::{Detection, Mode};

use super::*;

mod mutations;

#[derive(Parser)]
#[command(args_override_self = true)]
struct Line {
    #[command(flatten)]
    flags: ProxyFlags,
}

fn flags(arguments: &[&str]) -> ProxyFlags {
    Line::try_parse_from([&["proxy"], arguments].concat()).expect("arguments that can be read").flags
}

fn resolve(arguments: &[&str]) -> anyhow::Result<Proxy> {
    Proxy::resolve(&flags(arguments))
}

/// A file with these lines behind its head of two.
fn file(body: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = format!("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n{body}");
    std::fs::write(file.path(), text).expect("a written file");
    file
}

fn from_file(body: &str, more: &[&str]) -> anyhow::Result<Proxy> {
    let file = file(body);
    let path = file.path().to_string_lossy().into_owned();
    resolve(&[&["--config", path.as_str()], more].concat())
}

fn nets(texts: &[&str]) -> Vec<ipnet::IpNet> {
    texts.iter().map(|text| text.parse().expect("a range")).collect()
}

#[test]
fn without_a_word_it_runs_as_kube_proxy_does_in_the_best_mode() {
    let proxy = resolve(&["--hostname-override", " Node-1 "]).expect("defaults");
    assert_eq!(proxy.settings, Settings { node: "node-1".to_owned(), ..Settings::default() });
    assert_eq!(proxy.objects, Objects::Cluster { kubeconfig: None, master: None });
    assert_eq!((proxy.task, proxy.log_format, proxy.log_level), (Task::Run, LogFormat::Text, LevelFilter::INFO));
    assert_eq!(proxy.warnings, Vec::<String>::new());
    assert!(!resolve(&[]).expect("defaults").settings.node.is_empty(), "the machine has a name");
}

#[test]
fn a_file_that_says_nothing_is_the_same_as_no_option() {
    let by_file = from_file("", &["--hostname-override=n"]).expect("an empty file");
    let by_flags = resolve(&["--hostname-override=n"]).expect("defaults");
    assert_eq!(by_file.settings, by_flags.settings);
}

#[test]
fn options_are_read_as_kube_proxy_writes_them() {
    let proxy = resolve(&[
        "--kubeconfig=k",
        "--master=https://a:1",
        "--proxy-mode=nftables",
        "--bind-address=192.0.2.7",
        "--cluster-cidr=10.50.0.0/16,fd50::/48",
        "--detect-local-mode=ClusterCIDR",
        "--nodeport-addresses=192.0.2.0/24",
        "--nodeport-addresses=2001:db8::/32,10.0.0.0/8",
        "--masquerade-all",
        "--iptables-sync-period=1m",
        "--iptables-min-sync-period=0",
        "--healthz-bind-address=0.0.0.0:1256",
        "--metrics-bind-address=127.0.0.2",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=1h30m",
        "--conntrack-udp-timeout=0s",
        "--conntrack-tcp-be-liberal=true",
        "--feature-gates=ServiceTopology=true",
        "--oom-score-adj=-5",
        "--proxy-port-range=30000-30010",
        "--udp-timeout=2s",
        "--bind-address-hard-fail",
        "--logging-format=json",
        "-v=4",
        "--config-sync-period=1m0s",
        "--show-hidden-metrics-for-version=1.35",
    ])
    .expect("good options");
    let settings = proxy.settings;
    assert_eq!(
        proxy.objects,
        Objects::Cluster { kubeconfig: Some("k".into()), master: Some("https://a:1".to_owned()) }
    );
    assert_eq!((settings.mode, settings.masquerade_all, settings.topology_keys), (Some(Mode::Nftables), true, true));
    assert_eq!(settings.node_ips, ["192.0.2.7".parse::<std::net::IpAddr>().expect("an address")]);
    assert_eq!(settings.detection, Detection::ClusterCidr(nets(&["10.50.0.0/16", "fd50::/48"])));
    assert_eq!(
        settings.node_port_addresses,
        Some(NodePortAddresses::Ranges(nets(&["192.0.2.0/24", "2001:db8::/32", "10.0.0.0/8"])))
    );
    assert_eq!((settings.sync_period, settings.min_sync_period), (Duration::from_secs(60), Some(Duration::ZERO)));
    assert_eq!(settings.healthz.map(|address| address.to_string()).as_deref(), Some("0.0.0.0:1256"));
    assert_eq!(settings.metrics.map(|address| address.to_string()).as_deref(), Some("127.0.0.2:10249"));
    assert_eq!(settings.conntrack.max_per_core, None);
    assert_eq!(settings.conntrack.tcp_established, Some(Duration::from_secs(5400)));
    assert!(settings.conntrack.tcp_be_liberal && settings.bind_hard_fail);
    assert_eq!((settings.userspace.ports, settings.userspace.udp_idle), (Some(30000..=30010), Duration::from_secs(2)));
    assert_eq!(settings.oom_score_adj, Some(-5));
    assert_eq!((proxy.log_format, proxy.log_level), (LogFormat::Json, LevelFilter::DEBUG));
}

#[test]
fn what_is_not_said_depends_on_the_mode_and_the_family() {
    let settings = |arguments: &[&str]| resolve(arguments).expect("good options").settings;
    assert_eq!(settings(&[]).node_ports_in(Mode::Nftables), NodePortAddresses::Primary);
    assert_eq!(settings(&[]).node_ports_in(Mode::Iptables), NodePortAddresses::Ranges(vec![]));
    let primary = settings(&["--proxy-mode=iptables", "--nodeport-addresses=primary"]);
    assert_eq!(primary.node_ports_in(Mode::Iptables), NodePortAddresses::Primary);
    assert!(settings(&[]).localhost_in(Mode::Iptables) && !settings(&[]).localhost_in(Mode::Nftables));
    assert!(!settings(&["--iptables-localhost-nodeports=false"]).localhost_in(Mode::Iptables));
    assert!(settings(&["--nodeport-addresses=127.0.0.0/8"]).localhost_in(Mode::Nftables));
    assert!(settings(&["--nodeport-addresses=0.0.0.0/0,::/0"]).localhost_in(Mode::Iptables));
    assert!(!settings(&["--nodeport-addresses=10.0.0.0/8"]).localhost_in(Mode::Iptables));
    assert!(!settings(&["--nodeport-addresses=primary"]).localhost_in(Mode::Iptables));
    assert!(!settings(&["--nodeport-addresses=0.0.0.0/0,::/0"]).localhost_in(Mode::Nftables));
    let six = settings(&["--bind-address=2001:db8::1"]);
    assert_eq!(six.healthz.map(|address| address.to_string()).as_deref(), Some("[::]:10256"));
    assert_eq!(six.metrics.map(|address| address.to_string()).as_deref(), Some("[::1]:10249"));
    let ipvs = settings(&["--proxy-mode=ipvs", "--ipvs-sync-period=5s", "--iptables-sync-period=7s"]);
    assert_eq!(ipvs.sync_period, Duration::from_secs(5));
    let off = settings(&["--healthz-bind-address=", "--metrics-port=0"]);
    assert_eq!((off.healthz, off.metrics), (None, None));
    let port = settings(&["--healthz-port=99", "--metrics-bind-address=0.0.0.0", "--metrics-port=98"]);
    assert_eq!(port.healthz.map(|address| address.to_string()).as_deref(), Some("0.0.0.0:99"));
    assert_eq!(port.metrics.map(|address| address.to_string()).as_deref(), Some("0.0.0.0:98"));
    let bridge = settings(&["--detect-local-mode=BridgeInterface", "--pod-bridge-interface=br0"]);
    assert_eq!(bridge.detection, Detection::Bridge("br0".to_owned()));
}

#[test]
fn an_option_that_will_not_do_is_named() {
    let check = |argument: &str, want: &str| {
        let error = resolve(&[argument]).expect_err(argument).to_string();
        let (flag, value) = argument.split_once('=').expect("an option with a value");
        assert_eq!(error, format!("invalid argument {value:?} for {flag:?} flag: {want}"));
    };
    check("--iptables-masquerade-bit=32", "must be within the range [0, 31]");
    check("--iptables-masquerade-bit=x", "want a whole number of 32 bits");
    check("--oom-score-adj=1001", "must be within the range [-1000, 1000]");
    check("--conntrack-min=-1", "must be greater than or equal to 0");
    check("--conntrack-udp-timeout=-1s", "must be greater than or equal to 0");
    check("--conntrack-udp-timeout=5", "want a duration such as 30s or 1m30s");
    check("--config-sync-period=0s", "must be greater than 0");
    check("--bind-address=nowhere", "not a valid textual representation of an IP address");
    check(
        "--detect-local-mode=Guess",
        "supported values: \"ClusterCIDR\", \"NodeCIDR\", \"BridgeInterface\", \"InterfaceNamePrefix\", \"\"",
    );
    check(
        "--cluster-cidr=10.0.0.0/8,11.0.0.0/8",
        "must be either a single CIDR or a dual-stack pair of CIDRs (e.g. 10.100.0.0/16,fde4:8dba:82e1::/48)",
    );
    check(
        "--feature-gates=SCTPSupport=false",
        "cannot set feature gate SCTPSupport to false, feature is locked to true",
    );
    check("--masquerade-all=perhaps", "want true or false");
    check("--cleanup=perhaps", "want true or false");
    check("--healthz-port=x", "invalid digit found in string");
    check(
        "--ipvs-scheduler=fastest",
        "must be one of rr, wrr, lc, wlc, lblc, lblcr, sh, dh, mh, sed, nq, fo, ovf, twos",
    );
}

#[test]
fn an_address_without_a_port_that_exists_is_refused() {
    let error = resolve(&["--healthz-bind-address=1.2.3.4:0"]).expect_err("port 0").to_string();
    assert_eq!(error, "invalid argument \"0\" for \"--healthz-bind-address\" flag: must be a valid port");
}

#[test]
fn several_mistakes_are_told_at_once() {
    let error =
        resolve(&["--oom-score-adj=2000", "--proxy-mode=kernelspace", "--nodeport-addresses=primary,10.0.0.0/8"]);
    let error = error.expect_err("three mistakes").to_string();
    for part in ["\"--oom-score-adj\"", "\"kernelspace\" for \"--proxy-mode\"", "can't use both 'primary' and CIDRs"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn what_is_to_be_done_instead_of_running() {
    let task = |arguments: &[&str]| resolve(arguments).expect("good options").task;
    assert_eq!(task(&["--cleanup"]), Task::Cleanup);
    assert_eq!(task(&["--cleanup-iptables=true"]), Task::Cleanup);
    assert_eq!(task(&["--cleanup=false"]), Task::Run);
    assert_eq!(task(&["--init-only"]), Task::Init);
    assert_eq!(task(&["--version"]), Task::Version);
    assert_eq!(resolve(&["--manifests=dir"]).expect("good options").objects, Objects::Manifests(PathBuf::from("dir")));
    let Task::WriteConfig(file, text) =
        task(&["--write-config-to=f", "--bind-address=1.2.3.4", "--proxy-mode=iptables"])
    else {
        panic!("a file is to be written")
    };
    assert_eq!(file, PathBuf::from("f"));
    let again = parse_file(&text).expect("what is written can be read").0;
    assert_eq!((again.bind_address.as_str(), again.mode.as_str()), ("1.2.3.4", "iptables"));
    assert_eq!(again.to_yaml().expect("YAML"), text);
    assert!(text.contains("\n  qps: 5\n") && text.contains("\nconfigSyncPeriod: 15m0s\n"), "{text}");
}

#[test]
fn options_without_a_use_are_taken_and_told() {
    let proxy = resolve(&[
        "--logtostderr=true",
        "--boot-id-file=/x",
        "--vmodule=a=1",
        "--feature-gates=SupportIPVSProxyMode=true",
        "--profiling",
        "--proxy-mode=iptables",
    ]);
    assert_eq!(
        proxy.expect("good options").warnings,
        [
            "these options change nothing here: --boot-id-file, --vmodule, --logtostderr",
            "profiling is not served here",
            "nodePortAddresses is unset; NodePort connections will be accepted on all local IPs. Consider using \
             `--nodeport-addresses primary`",
            "these feature gates are not known here and change nothing: SupportIPVSProxyMode",
        ]
    );
}

#[test]
fn beside_a_file_most_options_do_not_count() {
    let body = "mode: iptables\nhostnameOverride: fromfile\nclusterCIDR: 10.1.0.0/16\nlogging: {verbosity: 5}\n\
                clientConnection: {kubeconfig: filekube}\niptables: {minSyncPeriod: 2s, masqueradeAll: true}\n";
    let proxy = from_file(
        body,
        &["--proxy-mode=nftables", "--kubeconfig=k", "--hostname-override=FromFlag", "--master=https://b", "-v2"],
    )
    .expect("a good file");
    assert_eq!((proxy.settings.mode, proxy.settings.node.as_str()), (Some(Mode::Iptables), "fromflag"));
    assert_eq!((proxy.settings.masquerade_all, proxy.settings.min_sync_period), (true, Some(Duration::from_secs(2))));
    assert_eq!(proxy.log_level, LevelFilter::INFO);
    assert_eq!(
        proxy.objects,
        Objects::Cluster { kubeconfig: Some("filekube".into()), master: Some("https://b".to_owned()) }
    );
    assert_eq!(proxy.warnings[0], "ignored because --config is given: --kubeconfig, --proxy-mode");
    assert_eq!(proxy.pages.configuration["clusterCIDR"], "10.1.0.0/16");
    let flag = |name: &str| proxy.pages.flags.iter().find(|(flag, _)| flag == name).map(|(_, value)| value.as_str());
    assert_eq!(
        (flag("proxy-mode"), flag("conntrack-min"), flag("hostname-override")),
        (Some("nftables"), Some("131072"), Some("FromFlag"))
    );
    assert_eq!(from_file("logging: {verbosity: 5}", &[]).expect("a good file").log_level, LevelFilter::DEBUG);
}

/// As kubeadm writes it.
const KUBEADM: &str = r#"bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection:
  acceptContentTypes: ""
  burst: 0
  contentType: ""
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
  qps: 0
clusterCIDR: 10.244.0.0/16
configSyncPeriod: 0s
conntrack:
  maxPerCore: null
  min: null
  tcpBeLiberal: false
  tcpCloseWaitTimeout: null
  tcpEstablishedTimeout: null
  udpStreamTimeout: 0s
  udpTimeout: 0s
detectLocal:
  bridgeInterface: ""
  interfaceNamePrefix: ""
detectLocalMode: ""
enableProfiling: false
healthzBindAddress: ""
hostnameOverride: ""
iptables:
  localhostNodePorts: null
  masqueradeAll: false
  masqueradeBit: null
  minSyncPeriod: 0s
  syncPeriod: 0s
ipvs:
  excludeCIDRs: null
  minSyncPeriod: 0s
  scheduler: ""
  strictARP: false
  syncPeriod: 0s
  tcpFinTimeout: 0s
  tcpTimeout: 0s
  udpTimeout: 0s
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
metricsBindAddress: ""
mode: ""
nftables:
  masqueradeAll: false
  masqueradeBit: null
  minSyncPeriod: 0s
  syncPeriod: 0s
nodePortAddresses: null
oomScoreAdj: null
portRange: ""
showHiddenMetricsForVersion: ""
winkernel:
  enableDSR: false
  forwardHealthCheckVip: false
  networkName: ""
  rootHnsEndpointName: ""
  sourceVip: ""
"#;

#[test]
fn a_file_of_kubeadm_is_taken_as_it_is() {
    let proxy = from_file(KUBEADM, &["--hostname-override=n"]).expect("a good file");
    let expected = Settings {
        node: "n".to_owned(),
        detection: Detection::ClusterCidr(nets(&["10.244.0.0/16"])),
        ..Settings::default()
    };
    assert_eq!(proxy.settings, expected);
    assert_eq!(proxy.warnings, Vec::<String>::new());
}

#[test]
fn json_is_read_too() {
    let text = "{\n\t\"apiVersion\": \"kubeproxy.config.k8s.io/v1alpha1\",\n\t\"kind\": \"KubeProxyConfiguration\",\n\t\"mode\": \"ipvs\",\n\t\"ipvs\": {\"scheduler\": \"lc\"}\n}\n";
    let (configuration, _) = parse_file(text).expect("JSON");
    assert_eq!((configuration.mode.as_str(), configuration.ipvs.scheduler.as_str()), ("ipvs", "lc"));
}

#[test]
fn a_mistake_in_a_file_has_its_line_and_field() {
    let check = |body: &str, want: &str| {
        let text = format!("apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n{body}");
        let error = parse_file(&text).expect_err(body).to_string();
        assert_eq!(error, want, "{body}");
    };
    check("mod: x\n", "line 3: unknown field \"mod\"");
    check("iptables:\n  masqueradeAll: true\n  masqueradebit: 3\n", "line 5: unknown field \"iptables.masqueradebit\"");
    check(
        "iptables:\n  masqueradeBit: many\n",
        "line 4: iptables.masqueradeBit: want a whole number of 32 bits, found a text",
    );
    check("iptables: 7\n", "line 3: iptables: want a map, found a number");
    check("mode: [nftables]\n", "line 3: mode: want a text, found a list");
    check("nodePortAddresses: primary\n", "line 3: nodePortAddresses: want a list of texts, found a text");
    check(
        "conntrack: {udpTimeout: 5}\n",
        "line 3: conntrack.udpTimeout: want a duration such as 30s or 1m30s, found a number",
    );
    check("bindAddressHardFail: \"yes\"\n", "line 3: bindAddressHardFail: want true or false, found a text");
    check(
        "nftables:\n  masqueradeBit: 77\n",
        "line 4: nftables.masqueradeBit: Invalid value: \"77\": must be within the range [0, 31]",
    );
    check(
        "nodePortAddresses:\n- 10.0.0.0/8\n- ten\n",
        "line 3: nodePortAddresses[1]: Invalid value: \"ten\": must be a valid CIDR",
    );
    check("detectLocalMode: BridgeInterface\n", "detectLocal.bridgeInterface: Invalid value: \"\": must not be empty");
    check(
        "iptables: {syncPeriod: 1s,\n  minSyncPeriod: 2s}\n",
        "line 3: iptables.syncPeriod: Invalid value: \"1s\": must be greater than or equal to iptables.minSyncPeriod (2s)",
    );
    check(
        "mode: iptables\nbogus: 1\nmetricsBindAddress: 5\n",
        "line 4: unknown field \"bogus\"; line 5: metricsBindAddress: want a text, found a number",
    );
    let error = parse_file("apiVersion: v1\nkind: ConfigMap\n").expect_err("another kind").to_string();
    assert_eq!(
        error,
        "line 1: apiVersion: want kubeproxy.config.k8s.io/v1alpha1, found \"v1\"; line 2: kind: want KubeProxyConfiguration, found \"ConfigMap\""
    );
    let double = parse_file("mode: a\nmode: b\n").expect_err("a field twice").to_string();
    assert!(double.starts_with("line 2: ") && double.contains("mode"), "{double}");
    assert!(from_file("", &["--config=/does/not/exist"]).expect_err("no file").to_string().contains("/does/not/exist"));
}

#[test]
fn fields_of_former_times_are_taken() {
    let proxy =
        from_file("resourceContainer: /kube-proxy\nudpIdleTimeout: 1s\nportRange: 30000-30009\nmode: userspace\n", &[]);
    let proxy = proxy.expect("a good file");
    assert_eq!(proxy.settings.userspace.udp_idle, Duration::from_secs(1));
    assert_eq!(proxy.settings.userspace.ports, Some(30000..=30009));
    assert!(proxy.warnings[0].ends_with("line 3: resourceContainer means nothing any more"), "{:?}", proxy.warnings);
}

/// Every option of kube-proxy 1.36, and some of former times.
const NAMES: &str = "
    bind-address bind-address-hard-fail boot-id-file cleanup cluster-cidr config config-sync-period
    conntrack-max-per-core conntrack-min conntrack-tcp-be-liberal conntrack-tcp-timeout-close-wait
    conntrack-tcp-timeout-established conntrack-udp-timeout conntrack-udp-timeout-stream detect-local-mode
    feature-gates healthz-bind-address hostname-override init-only iptables-localhost-nodeports
    iptables-masquerade-bit iptables-min-sync-period iptables-sync-period ipvs-exclude-cidrs ipvs-min-sync-period
    ipvs-scheduler ipvs-strict-arp ipvs-sync-period ipvs-tcp-timeout ipvs-tcpfin-timeout ipvs-udp-timeout
    kube-api-burst kube-api-content-type kube-api-qps kubeconfig log-flush-frequency log-json-info-buffer-size
    log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format machine-id-file
    masquerade-all master metrics-bind-address nodeport-addresses oom-score-adj pod-bridge-interface
    pod-interface-name-prefix profiling proxy-mode show-hidden-metrics-for-version v version vmodule
    write-config-to healthz-port metrics-port proxy-port-range udp-timeout cleanup-iptables";

#[test]
fn every_option_of_kube_proxy_is_taken() {
    let line = <Line as clap::CommandFactory>::command();
    let known = |name: &str| {
        line.get_arguments().any(|argument| {
            argument.get_long() == Some(name) || argument.get_all_aliases().is_some_and(|names| names.contains(&name))
        })
    };
    let missing: Vec<&str> = NAMES.split_whitespace().filter(|name| !known(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
    assert!(!known("proxy-speed"));
}

#[test]
fn durations_are_those_of_go() {
    for text in ["0s", "15m0s", "24h0m0s", "1h0m0s", "1.5s", "250ms", "2m0.5s", "-5s", "3µs", "7ns"] {
        assert_eq!(text.parse::<span::Span>().expect(text).to_string(), text);
    }
    for (text, want) in [("90s", "1m30s"), ("1.5h", "1h30m0s"), ("0", "0s"), ("+1m", "1m0s"), ("1h1ms", "1h0m0.001s")] {
        assert_eq!(text.parse::<span::Span>().expect(text).to_string(), want);
    }
    for text in ["", "5", "s", "1x", "1m1", "9999999h", "-", "1..5s"] {
        assert!(text.parse::<span::Span>().is_err(), "{text}");
    }
}
