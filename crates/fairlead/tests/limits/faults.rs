//! Errors of single calls of the kernel: sockets, netlink, files, at the first, second, ... call of each kind. The program goes on by
//! itself, serves what was changed meanwhile, and loses nothing that it has acknowledged.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use fairlead_testkit::{full, need};
use serde_json::{Value, json};

use crate::attacks::{self, Backend};
use crate::lab::{BACKENDS, Lab, lab_through, tool};
use crate::polite::{self, Kind, PATIENCE};
use crate::{alone, alone_in_long_run};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const HTTP: &str = "192.0.2.2:80";

/// Numbers and names of errors (asm-generic/errno.h).
type Errno = (i32, &'static str);
const EINTR: Errno = (4, "EINTR");
const EAGAIN: Errno = (11, "EAGAIN");
const ENOMEM: Errno = (12, "ENOMEM");
const ENFILE: Errno = (23, "ENFILE");
const EMFILE: Errno = (24, "EMFILE");
const ENOSPC: Errno = (28, "ENOSPC");
const ECONNABORTED: Errno = (103, "ECONNABORTED");
const ECONNRESET: Errno = (104, "ECONNRESET");
const ENOBUFS: Errno = (105, "ENOBUFS");
const EADDRNOTAVAIL: Errno = (99, "EADDRNOTAVAIL");

/// A kind of calls, and the errors that the kernel may give them. EAGAIN stands only where sockets wait: one that is followed by epoll
/// is never said to be not ready without becoming ready later.
struct Class {
    name: &'static str,
    errors: &'static [Errno],
}

/// In the order of `enum class` in inject.c.
const CLASSES: [Class; 13] = [
    Class { name: "socket of netlink", errors: &[EMFILE, ENOBUFS, ENFILE] },
    Class { name: "send by netlink", errors: &[ENOBUFS, EAGAIN, EINTR, ENOMEM] },
    Class { name: "receive by netlink", errors: &[ENOBUFS, EINTR, ENOMEM] },
    Class { name: "socket", errors: &[EMFILE, ENFILE, ENOBUFS] },
    Class { name: "accept", errors: &[EMFILE, ENFILE, ENOBUFS, ECONNABORTED] },
    Class { name: "connect", errors: &[EADDRNOTAVAIL, EAGAIN, ENOBUFS] },
    Class { name: "send of a datagram", errors: &[ENOBUFS, ENOMEM] },
    Class { name: "receive of a datagram", errors: &[ENOMEM, EINTR] },
    Class { name: "send in a stream", errors: &[ENOBUFS, ECONNRESET] },
    Class { name: "receive in a stream", errors: &[ENOMEM, ECONNRESET] },
    Class { name: "open of a file", errors: &[EMFILE, ENFILE, ENOSPC] },
    Class { name: "addition to an epoll", errors: &[ENOSPC, ENOMEM] },
    Class { name: "pipe", errors: &[EMFILE, ENFILE] },
];

/// The classes whose first calls are those of a start: netlink, accept, connect, files.
const AT_STARTS: [usize; 6] = [0, 1, 2, 4, 5, 10];

/// The file that the program under test shares with this test: five numbers of 32 bits for each class.
struct Faults(File);

impl Faults {
    fn create(path: &Path) -> Faults {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
        file.set_len(20 * CLASSES.len() as u64).unwrap();
        Faults(file)
    }

    fn read(&self, class: usize) -> [i32; 5] {
        let mut bytes = [0; 20];
        self.0.read_exact_at(&mut bytes, 20 * class as u64).unwrap();
        std::array::from_fn(|index| i32::from_ne_bytes(bytes[4 * index..4 * index + 4].try_into().unwrap()))
    }

    fn write(&self, class: usize, field: u64, value: i32) {
        self.0.write_all_at(&value.to_ne_bytes(), 20 * class as u64 + 4 * field).unwrap();
    }

    /// Has calls of a class fail: the one after `skipped` others, and those after it up to `times`.
    fn arm(&self, class: usize, error: i32, skipped: i32, times: i32) {
        self.write(class, 0, 0);
        self.write(class, 2, times);
        self.write(class, 1, self.calls(class) + skipped);
        self.write(class, 0, error);
    }

    fn disarm(&self, class: usize) {
        self.write(class, 0, 0);
    }

    /// Number of calls of a class so far.
    fn calls(&self, class: usize) -> i32 {
        self.read(class)[3]
    }

    /// Number of calls of a class that failed.
    fn failed(&self, class: usize) -> i32 {
        self.read(class)[4]
    }
}

/// A machine whose program has faults, and what it has acknowledged.
struct World {
    lab: Lab,
    faults: Faults,
    acknowledged: usize,
    rounds: usize,
    // The library and the file of faults.
    _home: tempfile::TempDir,
}

impl World {
    fn new(test: &str) -> Option<World> {
        let home = tempfile::tempdir().unwrap();
        let (library, shared) = (home.path().join("inject.so"), home.path().join("faults"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/limits/inject.c");
        let mut compiler = Command::new(need::program("cc").unwrap());
        let built = compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl").status();
        assert!(built.unwrap().success());
        let faults = Faults::create(&shared);
        let preload = format!("LD_PRELOAD={}", library.display());
        let named = format!("FAIRLEAD_FAULTS={}", shared.display());
        let flags = ["--pool", "192.0.2.0/28", "--dns-upstream", "10.50.0.11"];
        let lab = lab_through(test, &["env", &preload, &named], &flags)?;
        assert!(faults.calls(3) > 0, "no call of the program was seen: is it linked statically?");
        attacks::serve(&lab, 8090, Backend::Honest);
        attacks::forwarded_names(&lab.backends);
        lab.create("web", &json!({}));
        attacks::balance(&lab, "http", &json!({attacks::SPEAKS: "http"}), &[80], 8090);
        let mut world = World { lab, faults, acknowledged: 0, rounds: 0, _home: home };
        world.lab.api("POST", SLICES, &world.slice(0));
        world.lab.becomes("http", "192.0.2.2/Proxy");
        world.round("before any fault");
        Some(world)
    }

    /// The endpoints of the Service `web`: one of two, in turns.
    fn slice(&self, round: usize) -> Value {
        json!({
            "addressType": "IPv4", "metadata": {"name": "web", "labels": {"kubernetes.io/service-name": "web"}},
            "endpoints": [{"addresses": [BACKENDS[round % 2]], "nodeName": "here", "conditions": {"ready": true}}],
            "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
        })
    }

    /// Waits until something is so.
    #[track_caller]
    fn wait(&self, what: &str, holds: impl FnMut() -> bool) {
        self.wait_for(2 * PATIENCE, what, holds);
    }

    #[track_caller]
    fn wait_for(&self, limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
        let until = Instant::now() + limit;
        while !holds() {
            assert!(Instant::now() < until, "not within {limit:?}: {what}\n{}", self.lab.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Changes something of each kind, and waits until all of it is served.
    fn round(&mut self, what: &str) {
        self.rounds += 1;
        let lab = &self.lab;
        // Refused, or without an answer, is well if it is not for ever.
        let name = format!("acknowledged-{}", self.acknowledged);
        let object = json!({"metadata": {"name": name}}).to_string();
        self.wait(&format!("{what}: a write"), || {
            matches!(lab.try_api("POST", CONFIG_MAPS, &object), Some((201 | 409, _)))
        });
        self.acknowledged += 1;
        let (slice, path) = (self.slice(self.rounds).to_string(), format!("{SLICES}/web"));
        self.wait(&format!("{what}: a change"), || matches!(lab.try_api("PUT", &path, &slice), Some((200, _))));
        let backend = format!("{} hears", BACKENDS[self.rounds % 2]);
        let served = |answer: Option<String>| answer.is_some_and(|answer| answer.starts_with(&backend));
        self.wait(&format!("{what}: the load balancer leads to {backend}"), || served(lab.ask("192.0.2.1:80")));
        let number = self.rounds;
        for mut kind in [
            Kind { name: "HTTP", at: &lab.client, request: polite::http(HTTP.parse().unwrap()) },
            Kind {
                name: "cluster names",
                at: &lab.backends,
                request: polite::dns(|_| "web.default.svc.cluster.local".into()),
            },
            Kind {
                name: "forwarded names",
                at: &lab.backends,
                request: polite::dns(move |_| format!("n{number}.well.example")),
            },
        ] {
            let what = format!("{what}: {}", kind.name);
            self.wait(&what, || kind.at.run(|| (kind.request)(3).is_ok()).unwrap());
        }
        assert!(!lab.log().contains("panicked"), "{what}\n{}", lab.log());
    }

    /// Fails unless everything that was acknowledged is there.
    fn assert_nothing_lost(&self) {
        let mut body = String::new();
        self.wait("a list", || match self.lab.try_api("GET", CONFIG_MAPS, "") {
            Some((200, text)) => {
                body = text;
                true
            }
            _ => false,
        });
        let list: Value = serde_json::from_str(&body).unwrap();
        let names: Vec<&str> =
            list["items"].as_array().unwrap().iter().filter_map(|item| item["metadata"]["name"].as_str()).collect();
        for number in 0..self.acknowledged {
            let name = format!("acknowledged-{number}");
            assert!(names.contains(&name.as_str()), "{name} is lost\n{}", self.lab.log());
        }
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "how many calls failed is worth knowing")]
fn the_program_goes_on_after_an_error_of_any_call() {
    let test = "the_program_goes_on_after_an_error_of_any_call";
    let Some(_alone) = alone_in_long_run(test, &["cc"]) else { return };
    let Some(mut world) = World::new(test) else { return };
    for (class, Class { name, errors }) in CLASSES.iter().enumerate() {
        let mut hits = 0;
        for (errno, error) in *errors {
            // The first calls one by one, then fewer: a round makes the same calls again and again.
            for skipped in [0, 1, 2, 3, 5, 8, 13, 21, 34] {
                let before = world.faults.failed(class);
                let times = if skipped % 2 == 0 { 1 } else { 3 };
                world.faults.arm(class, *errno, skipped, times);
                if name.contains("netlink") {
                    // The program has to read and write all its tables again.
                    tool(&world.lab.machine, "nft flush ruleset");
                }
                world.round(&format!("{name}, {error}, after {skipped} calls"));
                world.faults.disarm(class);
                let failed = world.faults.failed(class) - before;
                hits += failed;
                if failed == 0 {
                    break;
                }
            }
        }
        println!("{name}: {} calls, {hits} of them failed", world.faults.calls(class));
        world.round(&format!("{name}, all errors over"));
    }
    world.assert_nothing_lost();
    world.lab.kill();
    world.lab.start();
    world.assert_nothing_lost();
    world.round("after a restart");
}

/// Starts the program with an error at one of its calls. It gets ready, or ends with the cause; returns true if it ended.
fn start_with_fault(world: &mut World, what: &str, error: i32) -> bool {
    world.lab.kill();
    let logged = world.lab.log().len();
    world.lab.spawn();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = world.lab.ended() {
            break Some(status);
        }
        if matches!(world.lab.try_api("GET", "/readyz", ""), Some((200, _))) {
            break None;
        }
        assert!(began.elapsed() < 2 * PATIENCE, "{what}: it neither ends nor gets ready\n{}", world.lab.log());
        thread::sleep(Duration::from_millis(5));
    };
    let Some(status) = status else { return false };
    let log = world.lab.log().split_off(logged);
    let cause = std::io::Error::from_raw_os_error(error).to_string();
    assert!(!status.success() && log.contains(&cause), "{what}: {status}\n{log}");
    true
}

#[test]
#[allow(clippy::print_stdout, reason = "how many calls failed is worth knowing")]
fn a_start_with_an_error_of_any_call_serves_or_ends_with_the_cause() {
    let test = "a_start_with_an_error_of_any_call_serves_or_ends_with_the_cause";
    let Some(_alone) = alone(test, &["cc"]) else { return };
    let Some(mut world) = World::new(test) else { return };
    for class in AT_STARTS {
        let Class { name, errors } = &CLASSES[class];
        let (mut hits, mut ends) = (0, 0);
        for (index, (errno, error)) in errors.iter().enumerate() {
            let places: &[i32] = match (full(), class, index) {
                (true, _, 0) => &[0, 1, 2, 3, 4, 5, 6, 8, 11, 15, 21, 30, 45, 70, 110],
                (true, ..) => &[1, 4, 11, 30],
                // The short run: links, rules and announcements each begin with such a socket.
                (false, 0, 0) => &[0, 1, 2, 3],
                (false, ..) => &[],
            };
            for skipped in places {
                let what = format!("start, {name}, {error}, after {skipped} calls");
                let before = world.faults.failed(class);
                world.faults.arm(class, *errno, *skipped, 1 + skipped % 3);
                let ended = start_with_fault(&mut world, &what, *errno);
                world.faults.disarm(class);
                if ended {
                    world.lab.start();
                }
                world.round(&what);
                let failed = world.faults.failed(class) - before;
                (hits, ends) = (hits + failed, ends + usize::from(ended));
                if failed == 0 {
                    break;
                }
            }
        }
        println!("{name}: {hits} calls failed, {ends} starts ended with the cause");
    }
    world.assert_nothing_lost();
}

#[test]
fn the_program_goes_on_after_descriptors_have_run_out() {
    let test = "the_program_goes_on_after_descriptors_have_run_out";
    let Some(_alone) = alone_in_long_run(test, &["cc", "prlimit"]) else { return };
    let Some(mut world) = World::new(test) else { return };
    let limit = |pid: u32, count: &str| {
        let status = Command::new("prlimit").args(["--pid", &pid.to_string(), &format!("--nofile={count}:")]).status();
        assert!(status.unwrap().success());
    };
    for count in ["64", "32", "3"] {
        limit(world.lab.pid(), count);
        // No new descriptor: what is open goes on, what is refused is tried again later.
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(3) {
            let _ = world.lab.try_api("GET", "/readyz", "");
            let _ = world.lab.ask("192.0.2.1:80");
        }
        limit(world.lab.pid(), "20000");
        world.round(&format!("{count} descriptors"));
        assert!(world.lab.log().len() < 1 << 20, "{} bytes of log", world.lab.log().len());
    }
    world.assert_nothing_lost();
}
