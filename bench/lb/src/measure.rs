//! Everybody has a turn with each kind of traffic, round by round, so that what else the machine does hits all alike.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use fairlead_bench_kit::CLIENT_CORE;
use fairlead_bench_kit::process::Running;

use crate::kinds::{ANSWERS, Kind};
use crate::load::{self, Outcome};
use crate::peers::{self, Subject};

/// How the measuring is done.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) time: Duration,
    pub(crate) rounds: usize,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) alone: bool,
    /// The build of this benchmark that is the load balancer.
    pub(crate) balancer: PathBuf,
}

/// What a load balancer came to.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// `None`: it cannot.
    pub(crate) figures: Vec<(Kind, Option<Figures>)>,
    /// Resident set before and after, in MiB.
    pub(crate) memory: (f64, f64),
}

/// Of one kind of traffic, the middle of all rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    /// Microseconds on a core for each.
    pub(crate) cpu: f64,
    /// How many a second.
    pub(crate) rate: f64,
    /// Microseconds until the answer.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// How many went wrong.
    pub(crate) failed: f64,
}

/// One that does not answer by then never will.
const START: Duration = Duration::from_secs(30);

/// Measures all there are.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Vec<Column>> {
    let folder = tempfile::tempdir()?;
    peers::certificates(folder.path())?;
    let program = std::env::current_exe()?;
    let logs = folder.path().join("backend");
    std::fs::create_dir(&logs)?;
    let mut backend = Running::start(&program, &["--answer".to_owned()], CLIENT_CORE, &logs)?;
    wait(ANSWERS, &mut backend, folder.path())?;
    let mut subjects = start(plan, folder.path())?;
    let mut before = Vec::new();
    for subject in &mut subjects {
        wait(subject.ports.http(), &mut subject.running, folder.path())?;
        before.push(subject.running.resident()?);
    }
    let mut columns = Vec::new();
    let figures = take_turns(plan, &mut subjects);
    for ((subject, before), figures) in subjects.iter().zip(before).zip(figures) {
        let mebi = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let memory = (mebi(before), mebi(subject.running.resident()?));
        columns.push(Column { name: subject.name, figures, memory });
    }
    Ok(columns)
}

fn start(plan: &Plan, folder: &Path) -> anyhow::Result<Vec<Subject>> {
    let mut subjects = vec![peers::ours(&plan.balancer, folder)?];
    if !plan.alone {
        subjects.extend(peers::haproxy(folder)?);
        subjects.extend(peers::nginx(folder)?);
    }
    Ok(subjects)
}

type Rows = Vec<(Kind, Option<Figures>)>;

fn take_turns(plan: &Plan, subjects: &mut [Subject]) -> Vec<Rows> {
    let mut rows: Vec<Rows> = subjects.iter().map(|_| Vec::new()).collect();
    for kind in &plan.kinds {
        let mut looks: Vec<Vec<Figures>> = subjects.iter().map(|_| Vec::new()).collect();
        for _ in 0..plan.rounds {
            for (subject, looks) in subjects.iter_mut().zip(&mut looks).filter(|(subject, _)| subject.can(*kind)) {
                match look(subject, *kind, plan.time) {
                    Ok(look) => looks.push(look),
                    Err(error) => println!("{} fails with {kind:?}: {error:#}", subject.name),
                }
            }
        }
        for (rows, looks) in rows.iter_mut().zip(looks) {
            rows.push((*kind, middle(&looks)));
        }
    }
    rows
}

fn look(subject: &mut Subject, kind: Kind, time: Duration) -> anyhow::Result<Figures> {
    subject.running.check()?;
    let port = kind.port(subject.ports);
    load::run(kind, port, time / 10)?;
    let before = subject.running.cpu_of_threads()?;
    let outcome = load::run(kind, port, time)?;
    let spent = subject.running.cpu_of_threads()?.saturating_sub(before);
    ensure!(outcome.done > 0.0, "nothing came through");
    Ok(figures(&outcome, spent))
}

fn figures(outcome: &Outcome, spent: Duration) -> Figures {
    Figures {
        cpu: spent.as_secs_f64() * 1e6 / outcome.done,
        rate: outcome.done / outcome.took.as_secs_f64(),
        p50: outcome.at(0.5),
        p99: outcome.at(0.99),
        failed: outcome.failed as f64,
    }
}

/// The middle of each figure.
fn middle(looks: &[Figures]) -> Option<Figures> {
    let of = |figure: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = looks.iter().map(figure).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    Some(Figures {
        cpu: of(|look| look.cpu)?,
        rate: of(|look| look.rate)?,
        p50: of(|look| look.p50)?,
        p99: of(|look| look.p99)?,
        failed: of(|look| look.failed)?,
    })
}

fn wait(port: u16, running: &mut Running, folder: &Path) -> anyhow::Result<()> {
    let since = Instant::now();
    while !load::run(Kind::HttpOne, port, Duration::from_millis(20)).is_ok_and(|outcome| outcome.failed == 0) {
        running.check().with_context(|| said(folder))?;
        ensure!(since.elapsed() < START, "nobody answers at port {port}\n{}", said(folder));
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// What the programs said.
fn said(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.map(|path| format!("{}:\n{}", path.display(), std::fs::read_to_string(&path).unwrap_or_default())).collect()
}
