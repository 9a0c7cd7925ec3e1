//! A server with objects in it, and the program as its client.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use fairlead_testkit::Server;
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_fairlead");

/// Objects of many kinds, with everything that is hard to print.
pub(crate) const OBJECTS: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: other}
---
apiVersion: v1
kind: Service
metadata:
  name: web
  labels: {app: web, tier: front}
  annotations:
    note: this is a text that goes on and on, far beyond the eightieth column of the screen, and it is not yet at its end
    number: "8"
    empty: ""
    emoji: "😀 <b>&"
spec:
  type: LoadBalancer
  selector: {app: web}
  loadBalancerSourceRanges: [192.0.2.0/24]
  ports:
  - {name: http, port: 80, targetPort: http}
  - {name: https, port: 443, targetPort: 8443, appProtocol: https}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: other}
spec: {clusterIP: None, ports: [{port: 5432}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: texts}
data:
  lines: "one\n  two\n"
  cut: "one\ntwo"
  blank: " x "
  k10: "yes"
  k2: "0x1f"
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {password: hush}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}, {name: https, port: 8443}]
endpoints:
- {addresses: [10.244.1.5], nodeName: n1, targetRef: {kind: Pod, name: web-1}}
- {addresses: [10.244.1.6], conditions: {ready: false}, hostname: h}
- {addresses: [10.244.1.7]}
- {addresses: [10.244.1.8]}
- {addresses: [10.244.1.9], zone: z}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, labels: {app: web}}
spec:
  nodeSelector: {disk: fast}
  tolerations: [{key: a, operator: Exists, effect: NoSchedule}, {operator: Exists}]
  volumes: [{name: tmp, emptyDir: {}}, {name: conf, configMap: {name: texts}}]
  containers:
  - name: web
    image: host
    command: [sleep, "1"]
    args: ["a\nb"]
    ports: [{name: http, containerPort: 8080}, {containerPort: 9090, protocol: UDP}]
    env:
    - {name: A, value: b}
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: KEY, valueFrom: {secretKeyRef: {name: keys, key: password}}}
    readinessProbe: {httpGet: {path: /healthz, port: http}}
    livenessProbe: {tcpSocket: {port: 8080}, initialDelaySeconds: 3}
    resources: {limits: {cpu: 500m, memory: 64Mi}}
    volumeMounts: [{name: tmp, mountPath: /tmp}, {name: conf, mountPath: /etc/conf, readOnly: true}]
---
apiVersion: v1
kind: Event
metadata: {name: web.1}
involvedObject: {apiVersion: v1, kind: Service, namespace: default, name: web}
type: Warning
reason: Odd
message: " something is odd \n"
source: {component: tester}
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-02T00:00:00Z"
count: 3
"#;

/// The server.
pub(crate) struct House {
    pub(crate) server: Server,
    pub(crate) files: TempDir,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) fine: bool,
    pub(crate) printed: String,
    pub(crate) complained: String,
}

impl House {
    /// An empty one.
    pub(crate) fn new() -> House {
        let server = Server::start(PROGRAM, &["--store", "memory"]);
        House { server, files: tempfile::tempdir().expect("a directory") }
    }

    /// One with the objects above.
    pub(crate) fn furnished() -> House {
        let house = House::new();
        let told = house.fed("apply -f -", OBJECTS);
        assert!(told.fine, "{}", told.complained);
        house
    }

    /// Runs the program.
    pub(crate) fn run(&self, line: &str) -> Told {
        self.fed(line, "")
    }

    /// Runs the program with something to read.
    pub(crate) fn fed(&self, line: &str, input: &str) -> Told {
        let mut child = self.command(PROGRAM, line).stdin(Stdio::piped()).spawn().expect("the program runs");
        // Who does not read it all has ended.
        let _ = child.stdin.take().expect("asked for").write_all(input.as_bytes());
        told(child.wait_with_output().expect("it ends"))
    }

    /// A command of a program, as somebody types it in the directory of files.
    pub(crate) fn command(&self, program: &str, line: &str) -> Command {
        let mut command = Command::new(program);
        command.args(words(line)).current_dir(self.files.path()).env("KUBECONFIG", self.server.kubeconfig());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, text: &str) {
        let path = self.files.path().join(name);
        std::fs::create_dir_all(path.parent().expect("below the directory")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
}

pub(crate) fn told(output: Output) -> Told {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Told { fine: output.status.success(), printed: text(output.stdout), complained: text(output.stderr) }
}

/// Words with blanks between; those in single quotes are one.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}
