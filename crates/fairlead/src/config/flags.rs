//! Every option there is, once: the same names on the command line and in the config file. Values
//! are texts here; what they mean, and what holds without them, is `config`'s matter. What has more
//! than one level stands in the file alone.

use std::fmt;

use clap::Args;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::images::ImageEntry;

/// A value as somebody wrote it. In a file a list stands for its items with commas between, and a map for `key=value` pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) String);

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.to_owned())
    }
}

/// Makes the struct of options and the rule that those given first win. What follows the semicolon
/// is for the file alone.
macro_rules! flags {
    ($($(#[$attribute:meta])+ $name:ident : $type:ty,)*; $($key:ident : $value:ty,)*) => {
        /// The options. `None` where nobody said anything.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub(crate) struct Flags {
            $(#[arg(long)] $(#[$attribute])+ pub(crate) $name: $type,)*
            $(#[arg(skip)] pub(crate) $key: $value,)*
        }

        impl Flags {
            /// These options, completed by others.
            pub(crate) fn or(self, other: Flags) -> Flags {
                Flags {
                    $($name: <$type as Join>::join(self.$name, other.$name),)*
                    $($key: <$value as Join>::join(self.$key, other.$key),)*
                }
            }
        }
    };
}

/// Which of two values counts.
trait Join {
    fn join(self, other: Self) -> Self;
}

impl<T> Join for Option<T> {
    fn join(self, other: Option<T>) -> Option<T> {
        self.or(other)
    }
}

flags! {
    /// Config file [default: /etc/fairlead/config.yaml, then $XDG_CONFIG_HOME/fairlead/config.yaml]
    #[arg(value_name = "FILE")]
    config: Option<Text>,
    /// Where everything is kept [default: /var/lib/fairlead as root, else $XDG_STATE_HOME/fairlead]
    #[arg(value_name = "DIR")]
    data_dir: Option<Text>,
    /// Address the API listens at [default: 127.0.0.1]
    #[arg(value_name = "IP")]
    bind_address: Option<Text>,
    /// Address of the endpoint of the Service `kubernetes` [default: --bind-address if others can reach it, else that of the default route]
    #[arg(value_name = "IP")]
    advertise_address: Option<Text>,
    /// Port of the API; 0 takes a free one [default: 6443]
    #[arg(value_name = "PORT")]
    secure_port: Option<Text>,
    /// Further names and addresses of the server, for its certificate
    #[arg(value_name = "NAME,...")]
    #[serde(deserialize_with = "once")]
    tls_san: Option<Vec<Text>>,
    /// The server's certificate [default: made by our own authority]
    #[arg(value_name = "FILE")]
    tls_cert_file: Option<Text>,
    /// Its private key
    #[arg(value_name = "FILE")]
    tls_private_key_file: Option<Text>,
    /// Ranges of cluster IPs, at most one for each family [default: 10.96.0.0/16,fd00:96::/108]
    #[arg(value_name = "CIDR,...")]
    #[serde(deserialize_with = "once")]
    service_cluster_ip_range: Option<Vec<Text>>,
    /// Node ports, as 30000-32767 or 30000+2767 [default: 30000-32767]
    #[arg(value_name = "RANGE")]
    service_node_port_range: Option<Text>,
    /// Ranges that spec.externalIPs may come from [default: any, for administrators alone]
    #[arg(value_name = "CIDR,...")]
    #[serde(deserialize_with = "once")]
    external_ip_range: Option<Vec<Text>>,
    /// Where objects are kept: embedded or memory [default: embedded]
    #[arg(value_name = "STORE")]
    store: Option<Text>,
    /// etcd servers to keep objects in instead
    #[arg(value_name = "URL,...")]
    #[serde(deserialize_with = "once")]
    etcd_servers: Option<Vec<Text>>,
    /// What keys in etcd begin with [default: /registry]
    #[arg(value_name = "PREFIX")]
    etcd_prefix: Option<Text>,
    /// Authority of etcd's certificates
    #[arg(value_name = "FILE")]
    etcd_cafile: Option<Text>,
    /// Our certificate for etcd
    #[arg(value_name = "FILE")]
    etcd_certfile: Option<Text>,
    /// Its private key
    #[arg(value_name = "FILE")]
    etcd_keyfile: Option<Text>,
    /// Features to switch, as ServiceTopology=true
    #[arg(value_name = "GATE=BOOL,...")]
    #[serde(deserialize_with = "once")]
    feature_gates: Option<Vec<Text>>,
    /// API versions to switch, as discovery.k8s.io/v1beta1=true
    #[arg(value_name = "VERSION=BOOL,...")]
    #[serde(deserialize_with = "once")]
    runtime_config: Option<Vec<Text>>,
    /// Authority of client certificates, besides our own
    #[arg(value_name = "FILE")]
    client_ca_file: Option<Text>,
    /// Fixed tokens: lines of token,user,uid,"group1,group2"
    #[arg(value_name = "FILE")]
    token_auth_file: Option<Text>,
    /// Whether requests without credentials are heard everywhere [default: only for health and version]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    anonymous_auth: Option<Text>,
    /// Who decides what is allowed: RBAC or AlwaysAllow [default: RBAC]
    #[arg(value_name = "MODE,...")]
    #[serde(deserialize_with = "once")]
    authorization_mode: Option<Vec<Text>>,
    /// Issuers of ServiceAccount tokens, ours first [default: https://kubernetes.default.svc.cluster.local]
    #[arg(value_name = "URL,...")]
    #[serde(deserialize_with = "once")]
    service_account_issuer: Option<Vec<Text>>,
    /// URL at which clients find the keys that check ServiceAccount tokens, for OpenID Connect
    /// discovery [default: /openid/v1/jwks below the first issuer]
    #[arg(value_name = "URL")]
    service_account_jwks_uri: Option<Text>,
    /// Keys that check ServiceAccount tokens
    #[arg(value_name = "FILE,...")]
    #[serde(deserialize_with = "once")]
    service_account_key_file: Option<Vec<Text>>,
    /// The key that signs ServiceAccount tokens [default: one we make]
    #[arg(value_name = "FILE")]
    service_account_signing_key_file: Option<Text>,
    /// Admission plugins to use besides the default ones: DenyServiceExternalIPs, ServiceAccount
    /// [default: ServiceAccount where serviceaccount-controller runs]
    #[arg(value_name = "PLUGIN,...")]
    #[serde(deserialize_with = "once")]
    enable_admission_plugins: Option<Vec<Text>>,
    /// Admission plugins not to use: DenyServiceExternalIPs, ServiceAccount
    #[arg(value_name = "PLUGIN,...")]
    #[serde(deserialize_with = "once")]
    disable_admission_plugins: Option<Vec<Text>>,
    /// File for the audit log; - is standard output [default: none]
    #[arg(value_name = "FILE")]
    audit_log_path: Option<Text>,
    /// Size of an audit log in megabytes at which a new one begins [default: 100]
    #[arg(value_name = "MB")]
    audit_log_maxsize: Option<Text>,
    /// How many old audit logs to keep; 0 keeps all [default: 10]
    #[arg(value_name = "COUNT")]
    audit_log_maxbackup: Option<Text>,
    /// Reading requests at a time; 0 is no limit [default: 400]
    #[arg(value_name = "COUNT")]
    max_requests_inflight: Option<Text>,
    /// Writing requests at a time; 0 is no limit [default: 200]
    #[arg(value_name = "COUNT")]
    max_mutating_requests_inflight: Option<Text>,
    /// Watches of all users at a time; administrators, Nodes and components have others; 0 is no
    /// limit [default: 5000]
    #[arg(value_name = "COUNT")]
    max_watches: Option<Text>,
    /// Watches of one user at a time; 0 is no limit [default: 1000]
    #[arg(value_name = "COUNT")]
    max_watches_per_user: Option<Text>,
    /// Connections of clients of the API at a time [default: 10000, or a third of the file
    /// descriptors]
    #[arg(value_name = "COUNT")]
    max_connections: Option<Text>,
    /// Connections of clients of the API from one address, or /64 of IPv6 [default: an eighth of
    /// --max-connections]
    #[arg(value_name = "COUNT")]
    max_connections_per_address: Option<Text>,
    /// How long a request may take [default: 1m0s]
    #[arg(value_name = "DURATION")]
    request_timeout: Option<Text>,
    /// How long an Event is kept after it was last written; 0 is for ever [default: 1h0m0s]
    #[arg(value_name = "DURATION")]
    event_ttl: Option<Text>,
    /// How much of the past of Services is kept, in bytes on disk; 0 keeps none [default: 64Mi]
    #[arg(value_name = "SIZE")]
    history_size: Option<Text>,
    /// How long it is kept; 0 keeps none [default: 24h]
    #[arg(value_name = "DURATION")]
    history_age: Option<Text>,
    /// Controllers to run: names, * for all that every cluster needs, -NAME for all but that one [default: all there are with up, none with server]
    #[arg(value_name = "NAME,...", allow_hyphen_values = true)]
    controllers: Option<Text>,
    /// The most endpoints in an EndpointSlice [default: 100]
    #[arg(value_name = "COUNT")]
    max_endpoints_per_slice: Option<Text>,
    /// The most addresses of a subset of hand-made Endpoints that are mirrored [default: 1000]
    #[arg(value_name = "COUNT")]
    mirroring_max_endpoints_per_subset: Option<Text>,
    /// How long a Node may be silent until it counts as not ready [default: 50s]
    #[arg(value_name = "DURATION")]
    node_monitor_grace_period: Option<Text>,
    /// How Services are served on this machine: nftables, iptables, ipvs, userspace, auto or none [default: auto with up, none with server]
    #[arg(value_name = "MODE")]
    proxy_mode: Option<Text>,
    /// The name of the Node this machine is [default: its host name]
    #[arg(value_name = "NAME")]
    hostname_override: Option<Text>,
    /// Ranges of the addresses of Pods [default: 10.244.0.0/16,fd00:244::/48]
    #[arg(value_name = "CIDR,...")]
    #[serde(deserialize_with = "once")]
    cluster_cidr: Option<Vec<Text>>,
    /// Whether Pods run on this machine [default: true with up]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pods: Option<Text>,
    /// Users of Pods on this machine, one for each Pod [default: 1900000000-1900065535]
    #[arg(value_name = "FIRST-LAST")]
    pod_users: Option<Text>,
    /// Addresses at which this machine answers for the cluster's names; empty: none [default: the tenth of each range with up]
    #[arg(value_name = "IP,...")]
    #[serde(deserialize_with = "once")]
    cluster_dns: Option<Vec<Text>>,
    /// The domain of the cluster's names [default: cluster.local]
    #[arg(value_name = "DOMAIN")]
    cluster_domain: Option<Text>,
    /// Who is asked for other names [default: the nameservers of /etc/resolv.conf]
    #[arg(value_name = "IP[:PORT],...")]
    #[serde(deserialize_with = "once")]
    dns_upstream: Option<Vec<Text>>,
    /// Where node ports are served: ranges, or primary [default: primary in mode nftables, everywhere in others]
    #[arg(value_name = "CIDR,...")]
    #[serde(deserialize_with = "once")]
    nodeport_addresses: Option<Vec<Text>>,
    /// Where the proxy's /healthz is; empty: nowhere [default: 127.0.0.1:10256]
    #[arg(value_name = "IP:PORT")]
    healthz_bind_address: Option<Text>,
    /// Where the proxy's /metrics is; empty: nowhere [default: 127.0.0.1:10249]
    #[arg(value_name = "IP:PORT")]
    metrics_bind_address: Option<Text>,
    /// Addresses for Services of type LoadBalancer, as 192.0.2.0/28 or lan=192.0.2.10-192.0.2.20; may be given several times
    #[arg(value_name = "[NAME=]RANGE,...")]
    #[serde(deserialize_with = "items")]
    pool: Option<Vec<Text>>,
    /// Addresses for internal load balancers; may be given several times
    #[arg(value_name = "[NAME=]RANGE,...")]
    #[serde(deserialize_with = "items")]
    internal_pool: Option<Vec<Text>>,
    /// The configuration file of load balancers: pools, certificates, groups of ranges, buckets
    #[arg(value_name = "FILE")]
    balancer_config: Option<Text>,
    /// The class of load balancers that Fairlead is [default: fairlead.dev/lb]
    #[arg(value_name = "CLASS")]
    load_balancer_class: Option<Text>,
    /// Where `fairlead lb` finds how load balancers do; empty: nowhere [default: 127.0.0.1:10253]
    #[arg(value_name = "IP:PORT")]
    balancer_bind_address: Option<Text>,
    /// Where traces of changes go, by OTLP over HTTP, such as http://127.0.0.1:4318 [default: nowhere]
    #[arg(value_name = "URL")]
    otlp_endpoint: Option<Text>,
    /// Logs as text or json [default: text]
    #[arg(value_name = "FORMAT")]
    log_format: Option<Text>,
    /// How much to log: error, warn, info, debug, trace, or a number as in kube-apiserver [default: info]
    #[arg(short = 'v', alias = "v", value_name = "LEVEL")]
    log_level: Option<Text>,
    ;
    images: Option<Vec<ImageEntry>>,
}

/// Options that may be given several times stand in a file once.
fn once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Text>>, D::Error> {
    Text::deserialize(deserializer).map(|text| Some(vec![text]))
}

/// Options whose values have commas themselves stand in a file as a list, or as one text.
fn items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Text>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Items {
        One(String),
        Several(Vec<String>),
    }
    let items = match Items::deserialize(deserializer)? {
        Items::One(text) => vec![text],
        Items::Several(texts) => texts,
    };
    Ok(Some(items.into_iter().map(Text).collect()))
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, a boolean, a list or a map of them")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }
    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Text, E> {
        Ok(Text(value.to_string()))
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Text, A::Error> {
        let mut texts = Vec::new();
        while let Some(Scalar(text)) = items.next_element()? {
            texts.push(text);
        }
        Ok(Text(texts.join(",")))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Text, A::Error> {
        let mut texts = Vec::new();
        while let Some((Scalar(key), Scalar(value))) = entries.next_entry()? {
            texts.push(format!("{key}={value}"));
        }
        Ok(Text(texts.join(",")))
    }
}

/// A value that is neither list nor map: they do not nest.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Scalar, D::Error> {
        struct ScalarVisitor;
        impl Visitor<'_> for ScalarVisitor {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number or a boolean")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }
        }
        deserializer.deserialize_any(ScalarVisitor)
    }
}
