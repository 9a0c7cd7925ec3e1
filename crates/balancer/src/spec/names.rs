//! The names of annotations on Services that load balancers know.

pub use fairlead_api::load_balancer::{LAST_GOOD, SSL_CERT};

/// GCP: `Internal`.
pub const GCP_TYPE_OLD: &str = "cloud.google.com/load-balancer-type";
/// GCP: `Internal`.
pub const GCP_TYPE: &str = "networking.gke.io/load-balancer-type";
/// AWS: `true`, or a range in old documents.
pub const AWS_INTERNAL: &str = "service.beta.kubernetes.io/aws-load-balancer-internal";
/// AWS: `internal` or `internet-facing`.
pub const AWS_SCHEME: &str = "service.beta.kubernetes.io/aws-load-balancer-scheme";
/// Azure: `true`.
pub const AZURE_INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
/// OpenStack: `true`.
pub const OPENSTACK_INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";
/// Baidu Cloud: `true`.
pub const BAIDU_INTERNAL: &str = "service.beta.kubernetes.io/cce-load-balancer-internal-vpc";
/// Alibaba Cloud: `intranet` or `internet`.
pub const ALIBABA_ADDRESS_TYPE: &str = "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type";
/// Oracle Cloud: `true`.
pub const ORACLE_INTERNAL: &str = "service.beta.kubernetes.io/oci-load-balancer-internal";
/// IBM Cloud: `private` or `public`.
pub const IBM_IP_TYPE: &str = "service.kubernetes.io/ibm-load-balancer-cloud-provider-ip-type";
/// Tencent Cloud: the subnet of an internal load balancer.
pub const TENCENT_SUBNET: &str = "service.kubernetes.io/qcloud-loadbalancer-internal-subnetid";

/// What all names of AWS begin with.
pub const AWS: &str = "service.beta.kubernetes.io/aws-load-balancer-";
/// What Pods speak.
pub const BACKEND_PROTOCOL: &str = "service.beta.kubernetes.io/aws-load-balancer-backend-protocol";
/// Which ports have the certificate.
pub const SSL_PORTS: &str = "service.beta.kubernetes.io/aws-load-balancer-ssl-ports";
/// Versions and suites of TLS.
pub const SSL_POLICY: &str = "service.beta.kubernetes.io/aws-load-balancer-ssl-negotiation-policy";
/// PROXY headers on all ports.
pub const AWS_PROXY_PROTOCOL: &str = "service.beta.kubernetes.io/aws-load-balancer-proxy-protocol";
/// Whether there are access logs.
pub const ACCESS_LOG: &str = "service.beta.kubernetes.io/aws-load-balancer-access-log-enabled";
/// How often they are written, in minutes.
pub const ACCESS_LOG_INTERVAL: &str = "service.beta.kubernetes.io/aws-load-balancer-access-log-emit-interval";
/// Where to.
pub const ACCESS_LOG_BUCKET: &str = "service.beta.kubernetes.io/aws-load-balancer-access-log-s3-bucket-name";
/// What their names begin with.
pub const ACCESS_LOG_PREFIX: &str = "service.beta.kubernetes.io/aws-load-balancer-access-log-s3-bucket-prefix";
/// Whether connections may go on with a backend that leaves.
pub const DRAINING: &str = "service.beta.kubernetes.io/aws-load-balancer-connection-draining-enabled";
/// For how long, in seconds.
pub const DRAINING_TIMEOUT: &str = "service.beta.kubernetes.io/aws-load-balancer-connection-draining-timeout";
/// How long a connection may be idle, in seconds.
pub const IDLE_TIMEOUT: &str = "service.beta.kubernetes.io/aws-load-balancer-connection-idle-timeout";
/// Whether endpoints of all zones are used.
pub const CROSS_ZONE: &str = "service.beta.kubernetes.io/aws-load-balancer-cross-zone-load-balancing-enabled";
/// What is kept and shown.
pub const TAGS: &str = "service.beta.kubernetes.io/aws-load-balancer-additional-resource-tags";
/// How many good checks make a backend healthy.
pub const CHECK_HEALTHY: &str = "service.beta.kubernetes.io/aws-load-balancer-healthcheck-healthy-threshold";
/// How many bad ones make it unhealthy.
pub const CHECK_UNHEALTHY: &str = "service.beta.kubernetes.io/aws-load-balancer-healthcheck-unhealthy-threshold";
/// How often it is checked, in seconds.
pub const CHECK_INTERVAL: &str = "service.beta.kubernetes.io/aws-load-balancer-healthcheck-interval";
/// How long an answer may take, in seconds.
pub const CHECK_TIMEOUT: &str = "service.beta.kubernetes.io/aws-load-balancer-healthcheck-timeout";
/// What is spoken in a check.
pub const CHECK_PROTOCOL: &str = "service.beta.kubernetes.io/aws-load-balancer-healthcheck-protocol";
/// Which port is checked.
pub const CHECK_PORT: &str = "service.beta.kubernetes.io/aws-load-balancer-healthcheck-port";
/// What is asked for.
pub const CHECK_PATH: &str = "service.beta.kubernetes.io/aws-load-balancer-healthcheck-path";
/// Groups whose members may use the load balancer too.
pub const EXTRA_GROUPS: &str = "service.beta.kubernetes.io/aws-load-balancer-extra-security-groups";
/// Groups whose members may use the load balancer.
pub const GROUPS: &str = "service.beta.kubernetes.io/aws-load-balancer-security-groups";
/// `nlb`.
pub const TYPE: &str = "service.beta.kubernetes.io/aws-load-balancer-type";

/// Who may use the load balancer, where the field says nothing.
pub const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// What all names of our own begin with.
pub const OWN: &str = "fairlead.dev/";
/// The addresses a Service wants, one a family.
pub const ADDRESSES: &str = "fairlead.dev/load-balancer-ips";
/// The pool its addresses come from.
pub const POOL: &str = "fairlead.dev/address-pool";
/// Services with the same key may have the same address.
pub const SHARED: &str = "fairlead.dev/allow-shared-ip";
/// The PROXY header backends get: `v1` or `v2`.
pub const PROXY_PROTOCOL: &str = "fairlead.dev/proxy-protocol";
/// Whether trusted fronts send PROXY headers.
pub const ACCEPT_PROXY: &str = "fairlead.dev/accept-proxy-protocol";
/// Which backend is next: `round-robin`, `least`, `two-choices`, `hash`.
pub const BALANCE: &str = "fairlead.dev/balance";
/// After how many seconds a client's connection of HTTP is ended.
pub const AGE: &str = "fairlead.dev/max-connection-age";
/// `true`: clients may ask for tunnels with CONNECT.
pub const CONNECT: &str = "fairlead.dev/connect";
/// `7`: HTTP is understood on the ports whose `appProtocol` allows it.
pub const LAYER: &str = "fairlead.dev/load-balancer-layer";
/// Shares of backends by their labels.
pub const WEIGHTS: &str = "fairlead.dev/weights";

/// Names of our own that others than `spec` read.
pub(super) const READ_ELSEWHERE: [&str; 5] = [ADDRESSES, POOL, SHARED, WEIGHTS, LAST_GOOD];
