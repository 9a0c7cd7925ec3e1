//! Does what a page says, and complains where it is not as the page says.

use std::time::{Duration, Instant};

use fairlead_testkit::need;

use crate::expect::Bindings;
use crate::lab::{Job, Lab, Machine};
use crate::page::{Command, Step, What};

/// How long what is shown may take to become so.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a command that serves and has nothing to say must live.
const SETTLED: Duration = Duration::from_millis(500);
/// Commands that go on until somebody ends them.
const SERVING: &[&str] = &["up", "server", "join", "control", "proxy", "dns", "balancer", "register", "watch"];
/// Commands that only look, and can look again: of the system, of kubectl, and ours.
const LOOKING: [(&str, &[&str]); 7] = [
    ("cat", &[]),
    ("curl", &[]),
    ("grep", &[]),
    ("ip", &[]),
    ("nft", &["list"]),
    ("kubectl", &["describe", "get", "logs"]),
    ("fairlead", OUR_LOOKING),
];
const OUR_LOOKING: &[&str] = &[
    "describe", "diff", "env", "events", "exec", "explain", "get", "history", "lb", "logs", "ps", "run", "status",
    "top", "trace",
];

/// What was wrong with a page, if anything: the line, and what happened there.
pub(crate) fn page(file: &str, steps: &[Step]) -> Result<(), String> {
    let (mut lab, mut reader) = (Lab::new(), Reader::default());
    for step in steps {
        let here = || format!("{file}:{}", step.line);
        if step.with.as_ref().is_some_and(|program| !need(&here(), program)) {
            continue;
        }
        let done = match &step.what {
            What::Lab { machine, commands } => reader.prepare(lab.machine(machine), commands),
            What::Session { machine, commands } => {
                commands.iter().try_for_each(|command| reader.follow(lab.machine(machine), command))
            }
            What::File { machine, name, text } => {
                std::fs::write(lab.machine(machine).home.join(name), text).map_err(|error| format!("{name}: {error}"))
            }
            What::Manifest { machine, text } => dry_run(lab.machine(machine), text),
            What::NotRun { .. } => Ok(()),
            What::Wrong(why) => Err(why.clone()),
        };
        done.map_err(|why| format!("line {}: {why}\n{}", step.line, reader.logs()))?;
    }
    Ok(())
}

/// Somebody who reads a page and types what it says.
#[derive(Default)]
struct Reader {
    bindings: Bindings,
    /// What runs in other terminals.
    serving: Vec<(String, Job)>,
}

impl Reader {
    fn prepare(&mut self, machine: &mut Machine, commands: &[String]) -> Result<(), String> {
        for command in commands {
            if serves(command) {
                let job = machine.begin(command);
                if announces(command) {
                    job.wait(|job| job.printed().contains('\n') || job.code().is_some());
                }
                self.settle(command, job).map_err(|said| format!("{command}\n{said}"))?;
            } else {
                let job = machine.run(command);
                if job.code() != Some(0) {
                    return Err(format!("{command}: {:?}\n{}", job.code(), job.printed()));
                }
            }
        }
        Ok(())
    }

    fn follow(&mut self, machine: &mut Machine, command: &Command) -> Result<(), String> {
        let text = self.bindings.command(&command.text);
        let done = if serves(&text) { self.serve(machine, &text, command) } else { self.once(machine, &text, command) };
        done.map_err(|printed| {
            let shown = command.output.join("\n");
            format!(
                "line {}, on {}:\n$ {text}\n{printed}\n--- but the page shows:\n{shown}\n---",
                command.line, machine.name
            )
        })
    }

    /// A command that ends; one that only looks may look again.
    fn once(&mut self, machine: &mut Machine, text: &str, command: &Command) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let job = machine.run(text);
            let Some(code) = job.code() else {
                return Err(format!("{}\n(it does not end)", job.printed()));
            };
            let silent_failure = command.output.is_empty() && code != 0;
            if !silent_failure && self.bindings.take(&command.output, &job.printed()) {
                return Ok(());
            }
            if !looks(text) || Instant::now() > until {
                return Err(format!("{}(code {code})", job.printed()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A command that goes on, in a terminal of its own.
    fn serve(&mut self, machine: &mut Machine, text: &str, command: &Command) -> Result<(), String> {
        let mut parts = command.output.split(|line| line == "^C");
        let (before, after) = (parts.next().unwrap_or_default(), parts.next());
        let job = machine.begin(text);
        if before.is_empty() && after.is_none() {
            return self.settle(text, job);
        }
        let mut fine = self.shows(&job, before);
        if let (true, Some(after)) = (fine, after) {
            machine.interrupt(&job);
            fine = job.wait(|job| job.code().is_some()) && self.shows(&job, &[before, after].concat());
        }
        let said = format!("{}--- and complains:\n{}", job.printed(), job.complained());
        self.serving.push((text.to_owned(), job));
        if fine { Ok(()) } else { Err(said) }
    }

    /// Whether a command that goes on comes to say this, or to complain about it.
    fn shows(&mut self, job: &Job, expected: &[String]) -> bool {
        let mut seen = false;
        job.wait(|job| {
            let ended = job.code().is_some();
            seen = [job.printed(), job.complained()].iter().any(|text| self.bindings.take(expected, text));
            seen || ended
        });
        seen
    }

    /// A command that has nothing to say must live for a while.
    fn settle(&mut self, text: &str, job: Job) -> Result<(), String> {
        std::thread::sleep(SETTLED);
        let failed = job.code().is_some_and(|code| code != 0);
        let said = format!("{}{}", job.printed(), job.complained());
        self.serving.push((text.to_owned(), job));
        if failed { Err(said) } else { Ok(()) }
    }

    /// What commands that went on have said, for who has to find out what went wrong.
    fn logs(&self) -> String {
        let log = |(command, job): &(String, Job)| format!("=== {command}\n{}{}", job.printed(), job.complained());
        self.serving.iter().map(log).collect()
    }
}

/// The API takes these objects, or says what is wrong with them.
fn dry_run(machine: &mut Machine, text: &str) -> Result<(), String> {
    std::fs::write(machine.home.join(".manifest"), text).map_err(|error| error.to_string())?;
    let kubeconfig = "KUBECONFIG=${KUBECONFIG:-/var/lib/fairlead/admin.kubeconfig}";
    let job = machine.run(&format!("{kubeconfig} kubectl apply --dry-run=server -f .manifest"));
    if job.code() == Some(0) { Ok(()) } else { Err(format!("the API does not take it: {}", job.printed())) }
}

fn serves(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().filter(|word| *word != "sudo").collect();
    let program = words.iter().position(|word| *word == "fairlead");
    let of_ours = program.and_then(|at| words.get(at + 1)).is_some_and(|word| SERVING.contains(word));
    let elsewhere = words.iter().any(|word| ["--help", "--write-config-to", "--cleanup", "--init-only"].contains(word));
    of_ours && !elsewhere || words.first().is_some_and(|word| ["etcd", "kube-apiserver"].contains(word))
}

/// Commands that say when they are ready.
fn announces(command: &str) -> bool {
    ["fairlead up", "fairlead server", "fairlead join", "fairlead register"].iter().any(|known| command.contains(known))
}

fn looks(command: &str) -> bool {
    let mut words = command.split_whitespace().filter(|word| *word != "sudo");
    let known = words.next().and_then(|program| LOOKING.iter().find(|(name, _)| *name == program));
    let (Some((_, subcommands)), next) = (known, words.next().unwrap_or_default()) else { return false };
    let lasting = match next {
        "run" => !command.contains(" --rm "),
        "lb" => command.contains(" drain "),
        _ => false,
    };
    (subcommands.is_empty() || subcommands.contains(&next)) && !lasting
}
