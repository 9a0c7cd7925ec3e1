//! A Node in a network namespace of its own: a server on a store in memory, a runner of Pods, and ways to look at them.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairlead_api::{Kind, Look, Settings as ApiSettings, kinds};
use fairlead_cluster::{Cluster, Delete, Error, Event, Patch, Selection, Step};
use fairlead_kernel::link::{Links, Prefix};
use fairlead_kernel::netns::Namespace;
use fairlead_pods::host::Host;
use fairlead_pods::images::{Images, Mapping};
use fairlead_pods::{Runner, Settings};
use fairlead_server::auth::keys::SigningKey;
use fairlead_server::auth::service_account::Tokens;
use fairlead_server::auth::{Authenticator, User};
use fairlead_server::{Admission, Authorization, Server};
use fairlead_store::Memory;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long something may take that should take a moment.
const PATIENCE: Duration = Duration::from_secs(30);
/// A finalizer: what has it is kept.
pub(crate) const KEPT: &str = "example.com/kept";
/// The Node.
pub(crate) const NODE: &str = "n1";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const NODE_ADDRESSES: [&str; 2] = ["192.168.77.1", "fd00:77::1"];

/// Somebody who may make Pods.
const EDITOR: &str = "somebody";

pub(crate) struct House {
    pub(crate) server: Server,
    pub(crate) cluster: Cluster,
    /// The same, as somebody who may make Pods and has no privileges to give them.
    unprivileged: Cluster,
    pub(crate) settings: Settings,
    pub(crate) host: Arc<dyn Host>,
    runner: Mutex<Option<JoinHandle<()>>>,
    stop: CancellationToken,
    _ends: DropGuard,
    folder: tempfile::TempDir,
}

/// Runs `work` in a house; skips it where none can be built.
pub(crate) fn in_house<F: Future<Output = ()>>(test: &str, work: impl FnOnce(Arc<House>) -> F + Send) {
    if !fairlead_testkit::need(test, "root") || !fairlead_testkit::need(test, "python3") {
        return;
    }
    let Ok(namespace) = Namespace::unnamed() else {
        fairlead_testkit::need::skip(test, "root");
        return;
    };
    let inside = || {
        let mut links = Links::open().unwrap();
        let lo = links.index("lo").unwrap();
        links.set_up(lo).unwrap();
        for address in NODE_ADDRESSES {
            links.add_address(lo, Prefix::host(address.parse().unwrap())).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let house = Arc::new(House::new().await);
            let done = AssertUnwindSafe(work(house.clone())).catch_unwind().await;
            house.stop_runner().await;
            fairlead_pods::cleanup(&house.settings.data).await.unwrap();
            if let Err(panic) = done {
                resume_unwind(panic);
            }
        });
    };
    namespace.run(inside).unwrap();
}

impl House {
    async fn new() -> House {
        let stop = CancellationToken::new();
        let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let tokens = Tokens::new(vec!["https://test".to_owned()], SigningKey::from_pem(&key).unwrap(), Vec::new());
        let authenticator = Authenticator { accounts: Some(tokens), ..Authenticator::default() };
        let server = Server::new(Arc::new(Memory::new()), options(), authenticator, None, stop.clone()).await;
        let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
        let user = User { name: "system:fairlead".to_owned(), groups, ..User::default() };
        let server = server.expect("a server");
        let door = |user: User| {
            let local = server.local(user);
            Cluster::new(local.clone(), Arc::new(local))
        };
        let cluster = door(user);
        let groups = vec!["system:authenticated".to_owned()];
        let unprivileged = door(User { name: EDITOR.to_owned(), groups, ..User::default() });
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(NODE, folder.path().join("pods"));
        settings.shim = vec![env!("CARGO_BIN_EXE_fairlead-pods-shim").into(), "shim".into()];
        settings.ca = Some("THE CA\n".to_owned());
        settings.pod_ranges = ["10.244.0.0/16", "fd00:244::/48"].map(|range| range.parse().unwrap()).to_vec();
        settings.refresh = Duration::from_millis(500);
        settings.images = images(&folder.path().join("image"));
        settings.measure = Duration::from_millis(200);
        settings.dns.cluster_dns = vec!["10.0.0.10".parse().unwrap()];
        make_node(&cluster).await;
        make_account(&cluster).await;
        allow_to_edit(&cluster).await;
        let runner = Runner::new(&cluster, settings.clone());
        let host = runner.host();
        let runner = Mutex::new(Some(tokio::spawn(runner.run(stop.clone()))));
        House {
            server,
            cluster,
            unprivileged,
            settings,
            host,
            runner,
            stop: stop.clone(),
            _ends: stop.drop_guard(),
            folder,
        }
    }

    /// Ends the runner without a word, as a kill does.
    pub(crate) async fn stop_runner(&self) {
        let runner = self.runner.lock().unwrap().take();
        if let Some(runner) = runner {
            runner.abort();
            let _ = runner.await;
            // What the kernel was just being asked for is done then.
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Starts another.
    pub(crate) fn start_runner(&self) -> Arc<dyn Host> {
        self.start_runner_with(|_| {})
    }

    /// Starts another, with settings of its own.
    pub(crate) fn start_runner_with(&self, change: impl FnOnce(&mut Settings)) -> Arc<dyn Host> {
        let mut settings = self.settings.clone();
        change(&mut settings);
        let runner = Runner::new(&self.cluster, settings);
        let host = runner.host();
        *self.runner.lock().unwrap() = Some(tokio::spawn(runner.run(self.stop.clone())));
        host
    }

    /// Ends everything, and makes the files say that it was on another day.
    pub(crate) async fn pretend_to_restart_the_machine(&self) {
        let mut folders = vec![self.data().join("state")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let name = entry.file_name().into_string().unwrap();
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else if name == "pod.json" || name == "state.json" {
                    let mut state: Value = serde_json::from_slice(&std::fs::read(entry.path()).unwrap()).unwrap();
                    let running = state.at("ended").is_null();
                    if let Some(init) = state.at("init").int_opt("number").filter(|_| running) {
                        let _ = fairlead_kernel::process::signal(i32::try_from(init).unwrap(), 9);
                        // The shim writes its last word.
                        sleep(Duration::from_millis(500)).await;
                    }
                    if name == "state.json" && running {
                        state = serde_json::from_slice(&std::fs::read(entry.path()).unwrap()).unwrap();
                        state.set("ended", Value::Null);
                    }
                    state.set("boot", "another day");
                    std::fs::write(entry.path(), state.to_string()).unwrap();
                }
            }
        }
        let links = std::process::Command::new("ip").args(["-o", "link"]).output().unwrap();
        let names = String::from_utf8_lossy(&links.stdout).into_owned();
        for name in names.lines().filter_map(|line| line.split(": ").nth(1)).filter(|name| name.starts_with("fl")) {
            let name = name.split('@').next().unwrap();
            std::process::Command::new("ip").args(["link", "del", name]).status().unwrap();
        }
    }

    /// Starts controllers beside it.
    pub(crate) fn control(&self, controllers: &str) {
        let choice = fairlead_control::Choice::parse(controllers).expect("controllers");
        let options = fairlead_control::Options { choice, ..fairlead_control::Options::default() };
        tokio::spawn(fairlead_control::run(self.cluster.clone(), options, self.stop.clone()));
    }

    /// The files of the images of [`images`].
    pub(crate) fn image_root(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("pods")
    }

    pub(crate) async fn make(&self, kind: &Kind, mut object: Value) -> Value {
        object.set("kind", kind.kind);
        object.set("apiVersion", kind.api_version());
        self.cluster.create(kind, &object).await.expect("made")
    }

    /// A Pod of a user of the host's, made by somebody who may not have that.
    pub(crate) async fn pod_without_right(&self, name: &str, user: u32) {
        let container =
            json!({"name": "c", "image": "host", "command": ["true"], "securityContext": {"runAsUser": user}});
        let metadata = json!({"name": name, "namespace": "default"});
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"nodeName": NODE, "containers": [container]},
        });
        self.unprivileged.create(&kinds::POD, &pod).await.expect("made");
    }

    /// A Pod of one container on this Node.
    pub(crate) async fn pod(&self, name: &str, command: &[&str], more: Value) -> Value {
        let container = json!({"name": "c", "image": "host", "command": command});
        self.pod_of(name, &[merged(container, more.at("container"))], more).await
    }

    /// A Pod of several.
    pub(crate) async fn pod_of(&self, name: &str, containers: &[Value], more: Value) -> Value {
        let spec = json!({"nodeName": NODE, "containers": containers, "terminationGracePeriodSeconds": 5});
        let metadata = json!({"name": name, "namespace": "default"});
        self.make(
            &kinds::POD,
            json!({
                "metadata": merged(metadata, more.at("metadata")),
                "spec": merged(spec, more.at("spec")),
            }),
        )
        .await
    }

    pub(crate) async fn get(&self, kind: &Kind, name: &str) -> Option<Value> {
        match self.cluster.get(kind, "default", name).await {
            Ok(object) => Some(object),
            Err(Error::NotFound(_)) => None,
            Err(error) => panic!("{name}: {error}"),
        }
    }

    /// Waits until a Pod is as it should be.
    pub(crate) async fn until(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.get(&kinds::POD, name).await {
                Some(pod) if holds(&pod) => return pod,
                other if Instant::now() > end => {
                    let events =
                        self.cluster.request(fairlead_cluster::Method::GET, EVENTS, None).await.expect("events");
                    let events: Vec<&str> = events.list("items").iter().map(|event| event.text("message")).collect();
                    let status = other.map(|pod| pod.at("status").to_string());
                    panic!("{name} did not become what it should: {status:?}, {events:#?}");
                }
                _ => {}
            }
            sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn ready(&self, name: &str) -> Value {
        self.until(name, |pod| condition(pod, "Ready").0 == "True").await
    }

    pub(crate) async fn until_gone(&self, name: &str) {
        let end = Instant::now() + PATIENCE;
        while let Some(pod) = self.get(&kinds::POD, name).await {
            assert!(Instant::now() < end, "{name} is still there: {pod}");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// How the container of a Pod ended that goes, and is kept to be looked at; then it may go.
    pub(crate) async fn end_of(&self, name: &str) -> Value {
        let ended = |pod: &Value| pod.at("status").list("containerStatuses")[0].at("state").at("terminated").clone();
        let pod = self.until(name, |pod| ended(pod).is_object()).await;
        // With a finalizer it stays until somebody lets it go.
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        self.cluster.patch(&kinds::POD, "default", name, &patch).await.unwrap();
        self.until_gone(name).await;
        ended(&pod)
    }

    pub(crate) async fn delete(&self, name: &str, grace: u64) {
        let how = Delete { grace_seconds: Some(grace), ..Delete::default() };
        self.cluster.delete(&kinds::POD, "default", name, &how).await.unwrap();
    }

    /// Follows a Pod that is still to be made.
    pub(crate) async fn follow(&self, name: &str) -> PodStates {
        let selection = Selection::all(&kinds::POD).with_fields(format!("metadata.name={name}"));
        let mut steps = self.cluster.follow(selection);
        while !matches!(steps.next().await.expect("a step"), Step::Listed(_)) {}
        PodStates { steps, seen: Vec::new() }
    }

    /// The reasons and messages of all Events about a Pod so far.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let events = self.cluster.request(fairlead_cluster::Method::GET, EVENTS, None).await.expect("events");
        let about = |event: &&Value| event.at("involvedObject").text("name") == name;
        let about = events.list("items").iter().filter(about);
        about.map(|event| (event.text("reason").to_owned(), event.text("message").to_owned())).collect()
    }

    /// Waits for an Event about a Pod, and returns its message.
    pub(crate) async fn event(&self, name: &str, reason: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let events = self.cluster.request(fairlead_cluster::Method::GET, EVENTS, None).await.expect("events");
            let about =
                |event: &&Value| event.text("reason") == reason && event.at("involvedObject").text("name") == name;
            if let Some(event) = events.list("items").iter().find(about) {
                return event.text("message").to_owned();
            }
            assert!(Instant::now() < end, "no Event {reason} about {name}: {events}");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// What a container has said so far.
    pub(crate) fn said(&self, pod: &Value, container: &str, run: u32) -> String {
        let meta = pod.at("metadata");
        let name = format!("{}_{}_{}", meta.text("namespace"), meta.text("name"), meta.text("uid"));
        let file = self.data().join("logs").join(name).join(container).join(format!("{run}.log"));
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.splitn(4, ' ').nth(3));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Waits until a container has said something.
    pub(crate) async fn says(&self, pod: &Value, container: &str, what: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let said = self.said(pod, container, 0);
            if said.contains(what) {
                return said;
            }
            assert!(Instant::now() < end, "{container} did not say {what:?} but {said:?}");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// What runs for images: `mapped`, `named` (with a user by name), `rooted` (as root), `missing` (without files) and `hosted` (on
/// the machine's files).
fn images(root: &Path) -> Images {
    let mapping = |name: &str, root: Option<&Path>, user: Option<&str>| Mapping {
        pattern: format!("{name}:*").parse().unwrap(),
        root: root.map(Path::to_owned),
        entrypoint: ["/bin/sh", "-c"].map(str::to_owned).to_vec(),
        command: vec!["echo $OF_IMAGE end; sleep 1000".to_owned()],
        env: [("OF_IMAGE", "from-image"), ("BOTH", "image's")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        user: user.map(str::to_owned),
        working_dir: root.map(|_| "/work-in-it".to_owned()),
    };
    let mappings = vec![
        mapping("mapped", Some(root), None),
        mapping("named", Some(root), Some("web")),
        mapping("rooted", Some(root), Some("root")),
        mapping("missing", Some(Path::new("/nowhere")), None),
        mapping("hosted", None, None),
    ];
    Images { mappings }
}

/// A Pod as its watchers see it.
pub(crate) struct PodStates {
    steps: BoxStream<'static, Step>,
    seen: Vec<Value>,
}

impl PodStates {
    /// Waits for a state, and returns it with all before it.
    pub(crate) async fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Vec<Value> {
        let find = async {
            loop {
                let Step::Changed(events, _) = self.steps.next().await.expect("a step") else { continue };
                let new = self.seen.len();
                for event in events {
                    if let Event::Put(object) = event {
                        self.seen.push(serde_json::from_slice(&object.json).unwrap());
                    }
                }
                if self.seen[new..].iter().any(&holds) {
                    return;
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, find).await;
        assert!(found.is_ok(), "the Pod did not become what it should: {:#?}", self.seen);
        self.seen.clone()
    }
}

/// Makes the account of Pods that name none.
async fn make_account(cluster: &Cluster) {
    let metadata = json!({"name": "default", "namespace": "default"});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    cluster.create(&kinds::SERVICE_ACCOUNT, &account).await.expect("made");
}

async fn make_node(cluster: &Cluster) {
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
        "spec": {"podCIDR": "10.244.7.0/24", "podCIDRs": ["10.244.7.0/24", "fd00:244:0:7::/64"]},
    });
    cluster.create(&kinds::NODE, &node).await.unwrap();
    let addresses: Vec<Value> = NODE_ADDRESSES.iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect();
    let has = json!({"cpu": "64", "memory": "64Gi", "pods": "110"});
    let status = json!({"addresses": addresses, "capacity": has, "allocatable": has});
    let patch = Patch::Merge(json!({"status": status}));
    cluster.patch_status(&kinds::NODE, "", NODE, &patch).await.unwrap();
}

/// Sets fields, one level deep.
fn merged(mut base: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().into_iter().flatten() {
        base.set(key.clone(), value.clone());
    }
    base
}

/// Whether a condition is so, and why.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> (&'a str, &'a str) {
    let conditions = object.at("status").list("conditions");
    let found = conditions.iter().find(|condition| condition.text("type") == kind);
    found.map_or(("", ""), |found| (found.text("status"), found.text("reason")))
}

/// The addresses of a Pod.
pub(crate) fn addresses(pod: &Value) -> Vec<IpAddr> {
    pod.at("status").list("podIPs").iter().map(|ip| ip.text("ip").parse().unwrap()).collect()
}

/// The first line of the answer to an HTTP request, and the body.
pub(crate) fn get(address: SocketAddr) -> std::io::Result<(String, String)> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Ok((head.lines().next().unwrap_or_default().to_owned(), body.to_owned()))
}

/// Lets somebody make Pods.
async fn allow_to_edit(cluster: &Cluster) {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "editors"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": EDITOR}],
    });
    cluster.create(&kinds::CLUSTER_ROLE_BINDING, &binding).await.expect("made");
}

fn options() -> fairlead_server::Options {
    fairlead_server::Options {
        settings: ApiSettings {
            service_ranges: vec!["10.0.0.0/16".parse().expect("a range")],
            node_ports: 30000..=32767,
            service_topology: false,
        },
        extra_kinds: Vec::new(),
        admission: Admission { grants_for_images: true, service_accounts: true, ..Admission::default() },
        advertise: SocketAddr::from(([127, 0, 0, 1], 6443)),
        authorization: Authorization::Rbac,
        request_timeout: Duration::from_secs(60),
        backup: None,
    }
}
