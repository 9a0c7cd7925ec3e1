//! The life of a shim once its container's process was started: output into the log and to those who attached, input and signals
//! the other way, and at last a note of how it ended.

use std::cell::RefCell;
use std::io::{self, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use fairlead_kernel::process;
use jiff::Timestamp;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::LocalSet;

use super::init::Report;
use super::launch::{self, End, Launch, Process, State};
use super::log::{Lines, LogFile};
use super::terminal::{Screen, Terminal};
use super::wire::{self, Kind};
use super::{Ends, Prepared, STARTED};

/// Pieces of output that wait for somebody who attached; who is slower loses some.
const WAITING: usize = 256;
/// Output that others hold open is not waited for longer.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Serves until the container has ended.
pub(super) fn serve(folder: &Path, launch: &Launch, prepared: Prepared, told: PipeWriter) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return tell(told, &error.to_string()),
    };
    LocalSet::new().block_on(&runtime, async {
        match Shim::new(folder, launch, prepared.init) {
            Ok(shim) => Rc::new(shim).run(prepared, told).await,
            Err(error) => tell(told, &format!("keeping the state of a container: {error}")),
        }
    });
}

fn tell(mut told: PipeWriter, what: &str) {
    // The starter may have gone.
    let _ = told.write_all(what.as_bytes());
}

struct Shim {
    folder: PathBuf,
    init: i32,
    stdin_once: bool,
    own_processes: bool,
    log: RefCell<LogFile>,
    state: watch::Sender<State>,
    output: broadcast::Sender<(Kind, Vec<u8>)>,
    input: mpsc::Sender<Vec<u8>>,
    inputs: RefCell<Option<mpsc::Receiver<Vec<u8>>>>,
    screen: RefCell<Option<Screen>>,
}

impl Shim {
    fn new(folder: &Path, launch: &Launch, init: i32) -> io::Result<Shim> {
        let gone = || io::Error::other("the container's first process is gone");
        let state = State {
            boot: launch::boot(),
            shim: Process::of(process_number()).ok_or_else(gone)?,
            init: Process::of(init).ok_or_else(gone)?,
            started: now(),
            ended: None,
        };
        let (input, inputs) = mpsc::channel(16);
        Ok(Shim {
            folder: folder.to_owned(),
            init,
            stdin_once: launch.stdin_once,
            own_processes: launch.own_processes,
            log: RefCell::new(LogFile::open(launch.log.clone())?),
            state: watch::Sender::new(state),
            output: broadcast::Sender::new(WAITING),
            input,
            inputs: RefCell::new(Some(inputs)),
            screen: RefCell::new(None),
        })
    }

    async fn run(self: Rc<Self>, prepared: Prepared, told: PipeWriter) {
        let Prepared { init, news, listener, ends } = prepared;
        let pumps = match self.clone().connect(ends) {
            Ok(pumps) => pumps,
            Err(error) => return tell(told, &error.to_string()),
        };
        let listening = tokio::task::spawn_local(self.clone().accept(listener));
        let ended = self.clone().follow(news, told).await;
        // All others of the container end with init; what they said is read to the end.
        let _ = process::wait(init);
        if !self.own_processes {
            // Whoever outlived init is ours now.
            super::init::kill_the_rest();
        }
        let _ = tokio::time::timeout(LAST_WORDS, async {
            for pump in pumps {
                let _ = pump.await;
            }
        })
        .await;
        self.state.send_modify(|state| state.ended = Some(ended));
        if let Err(error) = self.state.borrow().write(&self.folder) {
            let _ = writeln!(io::stderr(), "writing how the container ended: {error}");
        }
        // Those who listen are told before the socket goes.
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        listening.abort();
    }

    /// Reads what init says: first whether the process runs, then how it ended.
    async fn follow(self: Rc<Self>, news: io::PipeReader, told: PipeWriter) -> End {
        let mut told = Some(told);
        let mut answer = |shim: &Shim, ended: Option<&End>| {
            let mut state = shim.state.borrow().clone();
            state.ended = ended.cloned();
            let written = state.write(&shim.folder);
            if let Some(told) = told.take() {
                tell(told, &written.map_or_else(|error| error.to_string(), |()| STARTED.to_owned()));
            }
        };
        let Ok(news) = Receiver::from_owned_fd(OwnedFd::from(news)) else {
            return end(137, 9, None);
        };
        let mut lines = BufReader::new(news).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            match Report::read(&line) {
                Some(Report::Started) => {
                    self.state.send_modify(|state| state.started = now());
                    answer(&self, None);
                }
                Some(Report::Failed(why)) => {
                    let ended = end(128, 0, Some(why));
                    answer(&self, Some(&ended));
                    return ended;
                }
                Some(Report::Ended(status)) => {
                    let status = std::os::unix::process::ExitStatusExt::from_raw(status);
                    let signal = std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0);
                    return end(launch::code(status), signal, None);
                }
                None => {}
            }
        }
        // Killed, with everything in the container.
        let ended = end(137, 9, None);
        answer(&self, Some(&ended));
        ended
    }

    /// Carries output and input.
    fn connect(self: Rc<Self>, ends: Ends) -> io::Result<Vec<tokio::task::JoinHandle<()>>> {
        let inputs = self.inputs.borrow_mut().take();
        let pump = |lines, kind, from| tokio::task::spawn_local(self.clone().pump(lines, kind, from));
        let boxed = |from: io::PipeReader| -> io::Result<Box<dyn AsyncRead + Unpin>> {
            Ok(Box::new(Receiver::from_owned_fd(from.into())?))
        };
        match ends {
            Ends::Pipes { input, output, complaints } => {
                if let (Some(input), Some(inputs)) = (input, inputs) {
                    tokio::task::spawn_local(feed(Sender::from_owned_fd(input.into())?, inputs));
                }
                Ok(vec![
                    pump(Lines::new("stdout"), Kind::Output, boxed(output)?),
                    pump(Lines::new("stderr"), Kind::Complaints, boxed(complaints)?),
                ])
            }
            Ends::Terminal(fd) => {
                let Terminal { shows, types, screen } = Terminal::new(fd)?;
                *self.screen.borrow_mut() = Some(screen);
                if let Some(inputs) = inputs {
                    tokio::task::spawn_local(type_into(types, inputs));
                }
                Ok(vec![pump(Lines::new("stdout"), Kind::Output, Box::new(shows))])
            }
        }
    }

    async fn pump(self: Rc<Self>, mut lines: Lines, kind: Kind, mut from: Box<dyn AsyncRead + Unpin>) {
        let mut buffer = vec![0; 32 * 1024];
        // A terminal whose last program has gone answers with an error.
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            self.out(&mut lines, kind, &buffer[..length]);
        }
        lines.end(&mut self.log.borrow_mut(), Timestamp::now());
    }

    fn out(&self, lines: &mut Lines, kind: Kind, bytes: &[u8]) {
        lines.take(&mut self.log.borrow_mut(), Timestamp::now(), bytes);
        // Nobody may be there.
        let _ = self.output.send((kind, bytes.to_vec()));
    }

    async fn accept(self: Rc<Self>, listener: std::os::unix::net::UnixListener) {
        let listener = listener.set_nonblocking(true).and_then(|()| UnixListener::from_std(listener));
        let Ok(listener) = listener else { return };
        while let Ok((connection, _)) = listener.accept().await {
            tokio::task::spawn_local(self.clone().talk(connection));
        }
    }

    /// One who came: is told how things are, asks, perhaps attaches.
    async fn talk(self: Rc<Self>, connection: UnixStream) {
        let (mut from, mut to) = connection.into_split();
        let mut state = self.state.subscribe();
        state.mark_changed();
        let mut output: Option<broadcast::Receiver<(Kind, Vec<u8>)>> = None;
        let (frames, mut asked) = mpsc::channel(16);
        let reader = tokio::task::spawn_local(async move {
            while let Ok(Some(frame)) = wire::receive(&mut from).await {
                if frames.send(frame).await.is_err() {
                    return;
                }
            }
        });
        loop {
            let piece = async {
                match &mut output {
                    Some(output) => output.recv().await,
                    None => std::future::pending().await,
                }
            };
            // What was said comes before the end.
            let sent = tokio::select! {
                biased;
                piece = piece => match piece {
                    Ok((kind, bytes)) => wire::send(&mut to, kind, &bytes).await,
                    Err(_) => Ok(()),
                },
                changed = state.changed() => {
                    let now = serde_json::to_vec(&*state.borrow_and_update()).unwrap_or_default();
                    match changed {
                        Ok(()) => wire::send(&mut to, Kind::State, &now).await,
                        Err(_) => break,
                    }
                }
                frame = asked.recv() => match frame {
                    Some((Kind::Attach, _)) => { output = Some(self.output.subscribe()); Ok(()) }
                    Some(frame) => { self.ask(frame).await; Ok(()) }
                    None => break,
                },
            };
            if sent.is_err() {
                break;
            }
        }
        reader.abort();
        if output.is_some() && self.stdin_once {
            let _ = self.input.send(Vec::new()).await;
        }
    }

    async fn ask(&self, (kind, bytes): (Kind, Vec<u8>)) {
        match (kind, bytes.as_slice()) {
            (Kind::Signal, [signal]) if self.state.borrow().ended.is_none() => {
                let _ = process::signal(self.init, i32::from(*signal));
            }
            (Kind::Input, _) => drop(self.input.send(bytes).await),
            (Kind::Resize, [c1, c2, r1, r2]) => {
                if let Some(screen) = &*self.screen.borrow() {
                    screen.resize(u16::from_be_bytes([*c1, *c2]), u16::from_be_bytes([*r1, *r2]));
                }
            }
            _ => {}
        }
    }
}

/// Passes input on, until it ends.
async fn feed(mut to: Sender, mut inputs: mpsc::Receiver<Vec<u8>>) {
    while let Some(bytes) = inputs.recv().await {
        if bytes.is_empty() || to.write_all(&bytes).await.is_err() {
            break;
        }
    }
    drop(to);
    // Whoever sends more must not wait.
    while inputs.recv().await.is_some() {}
}

async fn type_into(mut terminal: Sender, mut inputs: mpsc::Receiver<Vec<u8>>) {
    const END_OF_INPUT: &[u8] = &[4];
    while let Some(bytes) = inputs.recv().await {
        let typed = if bytes.is_empty() { END_OF_INPUT } else { &bytes };
        let _ = terminal.write_all(typed).await;
    }
}

fn end(code: i32, signal: i32, failure: Option<String>) -> End {
    End { code, signal, at: now(), failure }
}

fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

fn process_number() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}
