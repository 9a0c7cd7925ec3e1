//! `fairlead env`: which environment variables a Pod's container has, or would have if it started now.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use fairlead_api::view::Service;
use fairlead_api::{Kind, Look, golang, kinds};
use fairlead_cluster::{Cluster, Error, Selection};
use fairlead_pods::env::{self, Environment, Given};
use serde_json::{Map, Value, json};

use crate::door;

/// The most that is read from standard input.
const INPUT: u64 = 64 << 20;

/// The options of `fairlead env`.
#[derive(Debug, Clone, Args)]
pub(crate) struct EnvFlags {
    /// The Pod: pod/NAME or NAME
    #[arg(value_name = "POD", required_unless_present = "stdin")]
    pod: Option<String>,
    /// The Pod's namespace
    #[arg(long, short = 'n', value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// The container [default: the first]
    #[arg(long, short = 'c', value_name = "NAME")]
    container: Option<String>,
    /// The kubeconfig of the cluster [default: $KUBECONFIG, or that of `fairlead up` on this machine, or as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Read {"services": [...], "pod": {"namespace": ..., "enableServiceLinks": ..., "env": [...]}} from standard input instead,
    /// and print the variables as JSON
    #[arg(long, conflicts_with_all = ["pod", "container", "kubeconfig"])]
    stdin: bool,
}

/// Prints the variables.
pub(crate) async fn run(flags: &EnvFlags) -> anyhow::Result<()> {
    let text = if flags.stdin { from_input(&input()?)? } else { from_cluster(flags).await? };
    std::io::stdout().write_all(text.as_bytes()).context("printing")
}

fn input() -> anyhow::Result<Value> {
    let mut text = Vec::new();
    std::io::stdin().take(INPUT).read_to_end(&mut text).context("reading standard input")?;
    serde_json::from_slice(&text).context("standard input is no JSON")
}

/// The variables of a container of which only the namespace and `env` are known, as JSON.
fn from_input(input: &Value) -> anyhow::Result<String> {
    let services: Vec<Service> = input.list("services").iter().map(service).collect::<Result<_, _>>()?;
    let pod = input.at("pod");
    let container = json!({"env": pod.at("env")});
    let links = pod.at("enableServiceLinks");
    let pod = json!({"metadata": {"namespace": pod.text("namespace")}, "spec": {"enableServiceLinks": links}});
    let made = Sources { services, ..Sources::default() }.environment(&pod, &container)?;
    let variables: Map<String, Value> = made.variables.into_iter().map(|(name, value)| (name, value.into())).collect();
    Ok(Value::Object(variables).to_string() + "\n")
}

/// A Service as the API would have it: what is null or empty in a port is absent.
fn service(object: &Value) -> anyhow::Result<Service> {
    let mut object = object.clone();
    for port in object.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(port) = port.as_object_mut() {
            port.retain(|_, value| !value.is_null() && value.as_str() != Some(""));
        }
    }
    serde_json::from_value(object).context("a Service makes no sense")
}

/// What an environment is made from, beside the Pod.
#[derive(Debug, Default)]
struct Sources {
    services: Vec<Service>,
    config_maps: BTreeMap<String, Value>,
    secrets: BTreeMap<String, Value>,
    allocatable: Value,
}

impl Sources {
    fn environment(&self, pod: &Value, container: &Value) -> anyhow::Result<Environment> {
        let services: Vec<&Service> = self.services.iter().collect();
        let ips = |list: &str, field: &str| -> Vec<String> {
            let status = pod.at("status");
            let all: Vec<String> = status.list(list).iter().map(|ip| ip.text("ip").to_owned()).collect();
            if all.is_empty() { status.text_opt(field).map(str::to_owned).into_iter().collect() } else { all }
        };
        let given = Given {
            pod,
            container,
            services: &services,
            config_maps: &self.config_maps,
            secrets: &self.secrets,
            pod_ips: &ips("podIPs", "podIP"),
            host_ips: &ips("hostIPs", "hostIP"),
            allocatable: &self.allocatable,
        };
        env::of(&given).map_err(|mistake| anyhow!("the container cannot start ({}): {mistake}", env::CONFIG_ERROR))
    }
}

/// The variables of a Pod's container, one a line. A value of several lines is quoted.
async fn from_cluster(flags: &EnvFlags) -> anyhow::Result<String> {
    let cluster = door::open(flags.kubeconfig.as_deref()).await?;
    let name = flags.pod.as_deref().unwrap_or_default();
    let name = ["pod/", "pods/", "po/"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let pod = cluster.get(&kinds::POD, &flags.namespace, name).await?;
    let container = container(&pod, flags.container.as_deref())?;
    let sources = read(&cluster, &flags.namespace, &pod, container).await?;
    let made = sources.environment(&pod, container)?;
    for note in &made.notes {
        let _ = writeln!(std::io::stderr(), "fairlead: {note}");
    }
    let shown = |value: &str| if value.contains('\n') { golang::quote(value) } else { value.to_owned() };
    Ok(made.variables.iter().map(|(name, value)| format!("{name}={}\n", shown(value))).collect())
}

fn container<'a>(pod: &'a Value, name: Option<&str>) -> anyhow::Result<&'a Value> {
    let spec = pod.at("spec");
    let all = || spec.list("containers").iter().chain(spec.list("initContainers"));
    let found = all().find(|container| name.is_none_or(|name| container.text("name") == name));
    let Some(found) = found else {
        let names: Vec<&str> = all().map(|container| container.text("name")).collect();
        bail!("--container: the Pod has no such container; it has {}", names.join(", "));
    };
    Ok(found)
}

/// Reads what the container's variables come from.
async fn read(cluster: &Cluster, namespace: &str, pod: &Value, container: &Value) -> anyhow::Result<Sources> {
    let services = cluster.list(&Selection::all(&kinds::SERVICE)).await.context("listing Services")?;
    let services = services.objects.iter().map(|object| serde_json::from_slice(&object.json));
    let services = services.collect::<Result<_, _>>().context("a Service makes no sense")?;
    let references = env::references(container);
    let node = pod.at("spec").text("nodeName");
    let node = match node {
        "" => None,
        node => optional(cluster.get(&kinds::NODE, "", node).await)?,
    };
    Ok(Sources {
        services,
        config_maps: all(cluster, &kinds::CONFIG_MAP, namespace, &references.config_maps).await?,
        secrets: all(cluster, &kinds::SECRET, namespace, &references.secrets).await?,
        allocatable: node.map(|node| node.at("status").at("allocatable").clone()).unwrap_or_default(),
    })
}

/// Those of the named objects that exist.
async fn all(
    cluster: &Cluster,
    kind: &Kind,
    namespace: &str,
    names: &BTreeSet<String>,
) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    for name in names {
        if let Some(object) = optional(cluster.get(kind, namespace, name).await)? {
            found.insert(name.clone(), object);
        }
    }
    Ok(found)
}

fn optional(read: Result<Value, Error>) -> anyhow::Result<Option<Value>> {
    match read {
        Ok(object) => Ok(Some(object)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
