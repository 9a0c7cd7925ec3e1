//! A Pod's `/etc/resolv.conf`: where its programs ask for names, by its dnsPolicy and dnsConfig, with the kubelet's limits.

use std::collections::HashSet;
use std::net::IpAddr;

use fairlead_api::Look;
use serde_json::Value;

#[cfg(test)]
mod tests;

/// What resolvers take.
const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_LINE: usize = 2048;
/// Some resolvers abort on a longer search domain.
const MAX_DOMAIN: usize = 253;
/// The reason of the Event about a limit.
pub const DNS_CONFIG_FORMING: &str = "DNSConfigForming";
/// The reason of the Event about a cluster without DNS.
pub const MISSING_CLUSTER_DNS: &str = "MissingClusterDNS";

/// What the cluster and the Node say about DNS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsSettings {
    /// Addresses of the cluster's DNS.
    pub cluster_dns: Vec<IpAddr>,
    /// `cluster.local`; empty: no search list of the cluster's.
    pub cluster_domain: String,
    /// Options of Pods that use the cluster's DNS.
    pub options: Vec<String>,
    /// The text of the Node's resolv.conf; `None`: it has none, and such Pods ask at the Node itself.
    pub host: Option<String>,
}

impl Default for DnsSettings {
    fn default() -> DnsSettings {
        DnsSettings {
            cluster_dns: Vec::new(),
            cluster_domain: "cluster.local".to_owned(),
            options: vec!["ndots:5".to_owned()],
            host: None,
        }
    }
}

/// Where names are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolv {
    /// Addresses of servers.
    pub nameservers: Vec<String>,
    /// Domains to look below.
    pub searches: Vec<String>,
    /// `ndots:5`.
    pub options: Vec<String>,
    /// What was left out or replaced.
    pub notes: Vec<Note>,
}

/// Something a Warning about the Pod should say, in the kubelet's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// There are too many servers.
    #[error(
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: {}", .0.join(" ")
    )]
    Nameservers(Vec<String>),
    /// The search list is too long.
    #[error(
        "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: {}", .0.join(" ")
    )]
    Searches(Vec<String>),
    /// The cluster has no DNS that a Pod of that policy could use.
    #[error(
        "pod: \"{0}\". kubelet does not have ClusterDNS IP configured and cannot create Pod using \"ClusterFirst\" policy. \
         Falling back to \"Default\" policy."
    )]
    NoClusterDns(String),
}

impl Note {
    /// The reason of the Event.
    pub fn reason(&self) -> &'static str {
        match self {
            Note::Nameservers(_) | Note::Searches(_) => DNS_CONFIG_FORMING,
            Note::NoClusterDns(_) => MISSING_CLUSTER_DNS,
        }
    }
}

/// Where a Pod's programs ask for names.
pub fn of(pod: &Value, settings: &DnsSettings) -> Resolv {
    let spec = pod.at("spec");
    let mut notes = Vec::new();
    let mut made = match policy(spec) {
        Policy::Nothing => Resolv::default(),
        Policy::Cluster if settings.cluster_dns.is_empty() => {
            notes.push(Note::NoClusterDns(described(pod)));
            host(settings)
        }
        Policy::Cluster => cluster(pod, settings),
        Policy::Host => host(settings),
    };
    made.add(spec.at("dnsConfig"));
    made.fit(&mut notes);
    Resolv { notes, ..made }
}

/// The text of the file.
pub fn render(resolv: &Resolv) -> String {
    let Resolv { nameservers, searches, options, .. } = resolv;
    let mut text = String::new();
    if !searches.is_empty() {
        text.push_str(&format!("search {}\n", searches.join(" ")));
    }
    nameservers.iter().for_each(|server| text.push_str(&format!("nameserver {server}\n")));
    if !options.is_empty() {
        text.push_str(&format!("options {}\n", options.join(" ")));
    }
    text
}

/// Reads a resolv.conf. Servers add up; of search lists the last counts; an option that comes again is another then.
pub fn parse(text: &str) -> Resolv {
    let mut read = Resolv::default();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => read.nameservers.extend(words.next().map(str::to_owned)),
            Some("search") => {
                let domains = words.filter(|word| *word != ".");
                read.searches = domains.map(|word| word.strip_suffix('.').unwrap_or(word).to_owned()).collect();
            }
            Some("options") => words.for_each(|option| read.set_option(option.to_owned())),
            _ => {}
        }
    }
    read
}

enum Policy {
    Cluster,
    Host,
    Nothing,
}

/// A policy nobody knows is the usual one.
fn policy(spec: &Value) -> Policy {
    match spec.text("dnsPolicy") {
        "None" => Policy::Nothing,
        "Default" => Policy::Host,
        "ClusterFirstWithHostNet" => Policy::Cluster,
        _ if spec.flag("hostNetwork") => Policy::Host,
        _ => Policy::Cluster,
    }
}

fn cluster(pod: &Value, settings: &DnsSettings) -> Resolv {
    let (namespace, domain) = (pod.at("metadata").text("namespace"), settings.cluster_domain.as_str());
    let of_cluster = [format!("{namespace}.svc.{domain}"), format!("svc.{domain}"), domain.to_owned()];
    let of_cluster = of_cluster.into_iter().filter(|_| !domain.is_empty());
    let of_host = settings.host.as_deref().map(parse).unwrap_or_default().searches;
    Resolv {
        nameservers: settings.cluster_dns.iter().map(IpAddr::to_string).collect(),
        searches: once(of_cluster.chain(of_host)),
        options: settings.options.clone(),
        notes: Vec::new(),
    }
}

/// What the Node uses. Without a file the resolver's rule holds: ask the machine itself, for whole names only.
fn host(settings: &DnsSettings) -> Resolv {
    match &settings.host {
        Some(text) => parse(text),
        None => {
            let (nameservers, searches) = (vec!["127.0.0.1".to_owned()], vec![".".to_owned()]);
            Resolv { nameservers, searches, ..Resolv::default() }
        }
    }
}

impl Resolv {
    /// Adds what the Pod's dnsConfig says.
    fn add(&mut self, config: &Value) {
        let own = |field: &str| config.texts(field).into_iter().map(str::to_owned).collect::<Vec<_>>();
        if !config.is_object() {
            return;
        }
        self.nameservers = once(std::mem::take(&mut self.nameservers).into_iter().chain(own("nameservers")));
        self.searches = once(std::mem::take(&mut self.searches).into_iter().chain(own("searches")));
        for option in config.list("options") {
            let (name, value) = (option.text("name"), option.text("value"));
            self.set_option(if value.is_empty() { name.to_owned() } else { format!("{name}:{value}") });
        }
    }

    /// Adds an option, or replaces the one of that name.
    fn set_option(&mut self, option: String) {
        fn name(option: &str) -> &str {
            option.split(':').next().unwrap_or(option)
        }
        match self.options.iter_mut().find(|known| name(known) == name(&option)) {
            Some(known) => *known = option,
            None => self.options.push(option),
        }
    }

    /// Leaves out what resolvers would not take.
    fn fit(&mut self, notes: &mut Vec<Note>) {
        if self.nameservers.len() > MAX_NAMESERVERS {
            self.nameservers.truncate(MAX_NAMESERVERS);
            notes.push(Note::Nameservers(self.nameservers.clone()));
        }
        let asked = self.searches.len();
        self.searches.truncate(MAX_SEARCHES);
        self.searches.retain(|domain| domain.len() <= MAX_DOMAIN);
        let mut length = 0;
        let fitting = self.searches.iter().take_while(|domain| {
            length += domain.len() + usize::from(length > 0);
            length <= MAX_SEARCH_LINE
        });
        let fitting = fitting.count();
        self.searches.truncate(fitting);
        if self.searches.len() < asked {
            notes.push(Note::Searches(self.searches.clone()));
        }
    }
}

/// Each only once, where it stands first.
fn once(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    items.filter(|item| seen.insert(item.clone())).collect()
}

/// `web_shop(uid)`, as the kubelet names Pods.
fn described(pod: &Value) -> String {
    let meta = pod.at("metadata");
    format!("{}_{}({})", meta.text("name"), meta.text("namespace"), meta.text("uid"))
}
