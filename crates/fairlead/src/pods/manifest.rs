//! The Pod that the options of `fairlead run` describe.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure};
use clap::{Args, ValueEnum};
use fairlead_probe::{Scheme, Wish};
use serde_json::{Map, Value, json};

use super::Place;

#[cfg(test)]
mod tests;

/// The image of a container that has none: the command is the host's.
const IMAGE: &str = "host";
/// The name of the only container.
const CONTAINER: &str = "main";

/// The options of `fairlead run`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The Pod's name [default: that of the command, and something random]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Labels of the Pod, by which Services find it
    #[arg(long, short = 'l', value_name = "KEY=VALUE,...", value_delimiter = ',')]
    pub(crate) labels: Vec<String>,
    /// A port it listens on, perhaps with a name: http=8080, 53/UDP
    #[arg(long = "port", short = 'p', value_name = "[NAME=]PORT[/PROTOCOL]")]
    pub(crate) ports: Vec<String>,
    /// It is ready when this says so: http:/PATH, tcp, grpc or exec:COMMAND, on the first port unless it names another
    #[arg(long, value_name = "CHECK")]
    pub(crate) ready: Option<Wish>,
    /// It is started again when this says no three times
    #[arg(long, value_name = "CHECK")]
    pub(crate) live: Option<Wish>,
    /// A variable of its environment
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// The user it runs as, perhaps with a group, as numbers [default: an unprivileged one]
    #[arg(long, value_name = "UID[:GID]")]
    pub(crate) user: Option<String>,
    /// Where it starts [default: here, if everybody may enter]
    #[arg(long, short = 'w', value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,
    /// Whether it is started again when it ends [default: Never with --rm, -i or -t, else Always]
    #[arg(long, value_name = "WHEN", value_enum)]
    pub(crate) restart: Option<Restart>,
    /// The Node it runs on [default: the scheduler's choice]
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// How long it may take to end, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) grace: Option<u32>,
    /// Leave it running in the background
    #[arg(long, short = 'd', conflicts_with_all = ["rm", "stdin", "tty"])]
    pub(crate) detach: bool,
    /// Remove it when it has ended
    #[arg(long)]
    pub(crate) rm: bool,
    /// Pass what is typed here on to it
    #[arg(long, short = 'i')]
    pub(crate) stdin: bool,
    /// Give it a terminal
    #[arg(long, short = 't')]
    pub(crate) tty: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum Restart {
    Always,
    OnFailure,
    Never,
}

/// The Pod. `here` is where it starts if the options do not say.
pub(crate) fn pod(flags: &RunFlags, here: Option<&Path>) -> anyhow::Result<Value> {
    let ports = flags.ports.iter().map(|text| port(text)).collect::<anyhow::Result<Vec<_>>>()?;
    let served = ports.first().and_then(|port| port["containerPort"].as_u64());
    let mut container = json!({"name": CONTAINER, "image": IMAGE, "command": flags.command});
    let mut set = |field: &str, value: Option<Value>| value.map(|value| container[field] = value);
    set("ports", (!ports.is_empty()).then(|| ports.clone().into()));
    set("readinessProbe", flags.ready.as_ref().map(|wish| probe("--ready", wish, served, 1)).transpose()?);
    set("livenessProbe", flags.live.as_ref().map(|wish| probe("--live", wish, served, 10)).transpose()?);
    set("env", variables(&flags.env)?);
    set("workingDir", flags.workdir.as_deref().or(here).map(|dir| dir.display().to_string().into()));
    set("securityContext", flags.user.as_deref().map(user).transpose()?);
    if flags.stdin {
        (container["stdin"], container["stdinOnce"]) = (true.into(), true.into());
    }
    if flags.tty {
        container["tty"] = true.into();
    }
    let usual = if flags.rm || flags.stdin || flags.tty { Restart::Never } else { Restart::Always };
    let mut spec = json!({
        "containers": [container],
        "restartPolicy": format!("{:?}", flags.restart.unwrap_or(usual)),
    });
    if let Some(node) = &flags.node {
        spec["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    }
    if let Some(seconds) = flags.grace {
        spec["terminationGracePeriodSeconds"] = seconds.into();
    }
    let mut metadata = json!({"namespace": flags.place.namespace, "labels": labels(&flags.labels)?});
    match &flags.name {
        Some(name) => metadata["name"] = name.as_str().into(),
        None => metadata["generateName"] = prefix(&flags.command[0]).into(),
    }
    Ok(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
}

/// What a name made for a command begins with: as much of the command's as names may have.
fn prefix(command: &str) -> String {
    let base = command.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let base: String = base.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect();
    let base = base.trim_matches('-');
    format!("{}-", if base.is_empty() { "run" } else { base })
}

fn labels(said: &[String]) -> anyhow::Result<Value> {
    let pairs = said.iter().map(|text| {
        let (key, value) = text.split_once('=').ok_or_else(|| anyhow!("--labels: {text:?}: want KEY=VALUE"))?;
        Ok((key.to_owned(), value.into()))
    });
    pairs.collect::<anyhow::Result<Map<String, Value>>>().map(Value::Object)
}

fn variables(said: &[String]) -> anyhow::Result<Option<Value>> {
    let pairs = said.iter().map(|text| {
        let (name, value) = text.split_once('=').ok_or_else(|| anyhow!("--env: {text:?}: want NAME=VALUE"))?;
        Ok(json!({"name": name, "value": value}))
    });
    let all = pairs.collect::<anyhow::Result<Vec<_>>>()?;
    Ok((!all.is_empty()).then(|| all.into()))
}

/// `http=8080`, `8080`, `53/UDP`, `dns=53/udp`.
fn port(text: &str) -> anyhow::Result<Value> {
    let wrong = || anyhow!("--port: {text:?}: want [NAME=]PORT[/PROTOCOL], such as http=8080 or 53/UDP");
    let (name, rest) = text.split_once('=').map_or((None, text), |(name, rest)| (Some(name), rest));
    let (number, protocol) = rest.split_once('/').unwrap_or((rest, "TCP"));
    let number: u16 = number.parse().map_err(|_| wrong())?;
    let protocol = protocol.to_ascii_uppercase();
    ensure!(number > 0 && ["TCP", "UDP", "SCTP"].contains(&protocol.as_str()), wrong());
    let mut port = json!({"containerPort": number, "protocol": protocol});
    if let Some(name) = name {
        port["name"] = name.into();
    }
    Ok(port)
}

/// A probe every so many seconds.
fn probe(flag: &str, wish: &Wish, served: Option<u64>, period: u32) -> anyhow::Result<Value> {
    let port = |said: Option<u16>| {
        let port = said.map(u64::from).or(served);
        port.ok_or_else(|| anyhow!("{flag}: {wish}: which port? Say --port, or name one in the check"))
    };
    let mut probe = match wish {
        Wish::Http { scheme, port: said, path } => {
            let scheme = if *scheme == Scheme::Https { "HTTPS" } else { "HTTP" };
            json!({"httpGet": {"path": path, "port": port(*said)?, "scheme": scheme}})
        }
        Wish::Tcp { port: said } => json!({"tcpSocket": {"port": port(*said)?}}),
        Wish::Grpc { service } => json!({"grpc": {"port": port(None)?, "service": service}}),
        Wish::Exec(command) => json!({"exec": {"command": ["/bin/sh", "-c", command]}}),
    };
    probe["periodSeconds"] = period.into();
    Ok(probe)
}

fn user(text: &str) -> anyhow::Result<Value> {
    let (uid, gid) = text.split_once(':').map_or((text, None), |(uid, gid)| (uid, Some(gid)));
    let number = |text: &str| match text.parse::<u32>() {
        Ok(number) => Ok(number),
        Err(_) => bail!("--user: {text:?}: want numbers, such as 1000 or 1000:1000"),
    };
    let mut context = json!({"runAsUser": number(uid)?});
    if let Some(gid) = gid {
        context["runAsGroup"] = number(gid)?.into();
    }
    Ok(context)
}
