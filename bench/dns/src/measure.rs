//! What is measured of every server with so many Services: in turns, so that what else the machine does hits all alike.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::load::{Asker, Outcome, Pace};
use crate::records::{self, Question};
use crate::subjects::{self, Peer, Subject};

/// How the looks are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) rate: u64,
    pub(crate) time: Duration,
    pub(crate) rounds: usize,
    pub(crate) alone: bool,
}

/// What a server came to.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Figures by what they are, in the order of [`crate::columns`].
    pub(crate) figures: Vec<f64>,
}

/// A server that does not answer by then never will.
const START: Duration = Duration::from_secs(60);

/// Measures all of them.
pub(crate) fn measure(fairlead: &Path, peers: &[Peer], services: usize, plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let questions = records::questions(services)?;
    let mut subjects = vec![subjects::fairlead(fairlead, services, folder.path())?];
    for peer in peers {
        subjects.push(peer.start(fairlead, services, folder.path())?);
    }
    if !plan.alone {
        subjects.push(subjects::bare(folder.path())?);
    }
    for subject in &mut subjects {
        wait(subject, &questions, services)?;
    }
    let mut looks: Vec<Vec<Vec<f64>>> = vec![Vec::new(); subjects.len()];
    for _ in 0..plan.rounds {
        for (subject, looks) in subjects.iter().zip(&mut looks) {
            looks.push(look(subject, &questions, plan)?);
        }
    }
    let row = |(subject, looks): (&Subject, &Vec<Vec<f64>>)| Row { name: subject.name, figures: middle(looks) };
    Ok(subjects.iter().zip(&looks).map(row).collect())
}

/// Waits until the last Service has its name.
pub(crate) fn wait(subject: &mut Subject, questions: &[Question], services: usize) -> anyhow::Result<()> {
    let reads = subject.name != "echo";
    let since = Instant::now();
    let mut asker = Asker::new(subject.at, questions, reads)?;
    loop {
        subject.running.check()?;
        let outcome = asker.ask(Pace::Fixed(1000), Duration::from_millis(100))?;
        if outcome.answered > 50 && outcome.wrong == 0 && outcome.lost == 0 {
            return Ok(());
        }
        ensure!(since.elapsed() < START, "{} has no answers for {services} Services: {outcome:?}", subject.name);
        thread::sleep(Duration::from_millis(50));
    }
}

fn look(subject: &Subject, questions: &[Question], plan: &Plan) -> anyhow::Result<Vec<f64>> {
    let mut asker = Asker::new(subject.at, questions, subject.name != "echo")?;
    asker.ask(Pace::FlatOut, plan.time / 10)?;
    let (calm, calm_cost) = cost(subject, || asker.ask(Pace::Fixed(plan.rate), plan.time))?;
    let (flat, flat_cost) = cost(subject, || asker.ask(Pace::FlatOut, plan.time))?;
    for outcome in [&calm, &flat] {
        ensure!(outcome.wrong == 0, "{}: {} wrong answers", subject.name, outcome.wrong);
    }
    let lost = (calm.lost + flat.lost) as f64;
    let memory = subject.running.resident()? as f64 / f64::from(1 << 20);
    let rate = flat.answered as f64 / flat.took.as_secs_f64();
    Ok(vec![calm_cost, calm.at(0.5), calm.at(0.99), flat_cost, rate, flat.at(0.5), flat.at(0.99), memory, lost])
}

/// Microseconds on a core for each answer.
fn cost(subject: &Subject, ask: impl FnOnce() -> anyhow::Result<Outcome>) -> anyhow::Result<(Outcome, f64)> {
    let before = subject.running.cpu_of_threads()?;
    let outcome = ask()?;
    let spent = subject.running.cpu_of_threads()?.saturating_sub(before);
    let each = spent.as_secs_f64() * 1e6 / outcome.answered.max(1) as f64;
    Ok((outcome, each))
}

/// The middle of every figure.
fn middle(looks: &[Vec<f64>]) -> Vec<f64> {
    let figures = looks.first().map_or(0, Vec::len);
    let of = |figure: usize| {
        let mut values: Vec<f64> = looks.iter().map(|look| look[figure]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    (0..figures).map(of).collect()
}
