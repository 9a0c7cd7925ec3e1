//! What `fairlead --help` shows: all commands on one screen, by what people come for.

use clap::Command;

/// Commands that belong together, and what they do. Those that are not there are left out.
const ROWS: &[(&str, &[&str], &str)] = &[
    ("Start", &["up"], "Everything: API, Pods, proxy, DNS, balancer"),
    ("", &["join", "token"], "Make other machines its Nodes"),
    ("", &["status", "doctor"], "How everything does; whether a machine is fit"),
    ("", &["ui"], "A link to the web page"),
    ("Services", &["explain"], "Why a Service does not work; what mends it"),
    ("", &["trace"], "What happens to a packet, and why"),
    ("", &["top"], "Traffic of Services and endpoints, live"),
    ("", &["lb"], "Load balancers: how they do; drain backends"),
    ("", &["register"], "Make a process or foreign host an endpoint"),
    ("Objects", &["get", "describe"], "Show them, or all about them, as kubectl does"),
    ("", &["apply", "delete"], "Make them what files say; delete them"),
    ("", &["watch", "events"], "Them as they change; what happened to them"),
    ("", &["history", "diff"], "What they were, and what changed since"),
    ("Pods", &["run", "ps", "stop"], "Run commands as Pods; show and end them"),
    ("", &["logs", "exec", "env"], "What they say; run beside them; variables"),
    ("", &["image"], "Images of containers: load, list, remove"),
    ("Parts", &["server", "control"], "The API server; controllers of a cluster"),
    ("", &["proxy", "dns", "balancer"], "For kube-proxy, CoreDNS and MetalLB"),
    ("Keep", &["backup", "restore"], "Copy the store into a file, and back"),
    ("", &["cleanup"], "Remove all that Fairlead put into the kernel"),
    ("Shell", &["completion", "man", "version"], "Completions, manual pages, version"),
];

/// Columns of the headings and of the names.
const WIDTHS: (usize, usize) = (9, 26);

/// The template of the help.
pub(super) fn text(command: &Command) -> String {
    let there = |name: &str| command.get_subcommands().any(|known| known.get_name() == name && !known.is_hide_set());
    let mut lines =
        vec!["{about}".to_owned(), String::new(), "{usage-heading} fairlead <COMMAND> [OPTIONS]".to_owned()];
    let mut heading = "";
    lines.push(String::new());
    for (title, names, what) in ROWS {
        if !title.is_empty() {
            heading = title;
        }
        let names: Vec<&str> = names.iter().copied().filter(|name| there(name)).collect();
        if !names.is_empty() {
            let (first, second) = WIDTHS;
            lines.push(format!("{:first$}{:second$}{what}", std::mem::take(&mut heading), names.join(", ")));
        }
    }
    lines.push(String::new());
    lines.push("`fairlead COMMAND --help` tells all about one, with examples. Options: -h, -V.".to_owned());
    lines.join("\n") + "\n"
}

/// Commands the overview knows.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(|(_, names, _)| names.iter().copied())
}
