//! The page beside everything else: traffic that is counted, names, packets and Nodes of a real machine.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fairlead_kernel::netns::Namespace;
use fairlead_testkit::need;
use serde_json::Value;
use tempfile::TempDir;

use crate::browser::{PROGRAM, PROOF};

const LIMIT: Duration = Duration::from_secs(60);

/// A network namespace with a way out, in which `fairlead up` runs, and somebody signed in to its page.
struct Machine {
    namespace: Namespace,
    home: TempDir,
    up: Child,
    proof: String,
}

impl Machine {
    fn start() -> Machine {
        let (namespace, home) = (Namespace::unnamed().unwrap(), tempfile::tempdir().unwrap());
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let log = File::create(home.path().join("log")).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["up", "--hostname-override", "here", "--healthz-bind-address=", "--metrics-bind-address="]);
        command.arg("--data-dir").arg(home.path().join("data"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        for line in [
            "ip link set lo up",
            "ip link add way type veth peer name out",
            "ip link set way up; ip link set out up",
            "ip address add 198.51.100.2/24 dev way",
            "ip route add default via 198.51.100.1",
        ] {
            let done = namespace.run(|| Command::new("sh").args(["-c", line]).status()).unwrap().unwrap();
            assert!(done.success(), "{line}");
        }
        let up = namespace.run(|| command.spawn()).unwrap().unwrap();
        Machine { namespace, home, up, proof: String::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// What a line of shell prints, if it ends well.
    fn try_shell(&self, line: &str) -> Option<String> {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir("/").env("FAIRLEAD", PROGRAM).env("HOME_DIR", self.home.path());
        command.env("KUBECONFIG", self.path("data/admin.kubeconfig")).stdin(Stdio::null());
        let output = self.namespace.run(|| command.output()).unwrap().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    #[track_caller]
    fn shell(&self, line: &str) -> String {
        self.try_shell(line).unwrap_or_else(|| panic!("{line}\n{}", self.log()))
    }

    #[track_caller]
    fn wait<T>(&self, what: &str, mut find: impl FnMut() -> Option<T>) -> T {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(found) = find() {
                return found;
            }
            assert!(Instant::now() < until, "not in {LIMIT:?}: {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Signs in as a browser would.
    fn sign_in(&mut self) {
        let link = self.wait("a link", || self.try_shell("$FAIRLEAD ui"));
        let (_, token) = link.trim().split_once("/ui/#token=").expect("a link");
        let login = format!(
            "curl -sSf --cacert $HOME_DIR/data/pki/ca.crt -c $HOME_DIR/jar -H 'Content-Type: application/json' \
             -d '{{\"token\":\"{token}\"}}' https://127.0.0.1:6443/ui/login"
        );
        let signed: Value = serde_json::from_str(&self.shell(&login)).unwrap();
        self.proof = signed["proof"].as_str().unwrap().to_owned();
    }

    /// What the page gets.
    fn ask(&self, path: &str) -> Option<Value> {
        let line = format!(
            "curl -sSf --cacert $HOME_DIR/data/pki/ca.crt -b $HOME_DIR/jar -H '{PROOF}: {}' \
             'https://127.0.0.1:6443/fairlead/v1/{path}'",
            self.proof
        );
        serde_json::from_str(&self.try_shell(&line)?).ok()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.up.kill();
        let _ = self.up.wait();
        let _ = self.try_shell("$FAIRLEAD cleanup --data-dir $HOME_DIR/data");
    }
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  selector:\n    app: web\n  ports:\n  - name: http\n    \
                       port: 80\n    targetPort: 9376\n";

#[test]
fn numbers_move_with_traffic_and_every_view_has_something_to_show() {
    let test = "numbers_move_with_traffic_and_every_view_has_something_to_show";
    if !["root", "ip", "curl", "python3", "kubectl"].iter().all(|what| need::need(test, what)) {
        return;
    }
    let mut machine = Machine::start();
    machine.sign_in();
    let node = |value: &Value| value["items"].as_array()?.first().cloned();
    let ready = |node: &Value| node["ready"] == true && node["podRanges"][0].is_string();
    machine.wait("the Node", || machine.ask("nodes").as_ref().and_then(node).filter(ready));
    fs::write(machine.path("service.yaml"), SERVICE).unwrap();
    let kubectl = need::program("kubectl").unwrap().display().to_string();
    machine.shell(&format!("{kubectl} --cache-dir $HOME_DIR/cache apply -f $HOME_DIR/service.yaml"));
    machine.shell(
        "$FAIRLEAD run -d --name web-1 --labels app=web --port http=9376 --ready http:/ --workdir /etc -- \
         python3 -u -m http.server 9376",
    );
    let row = machine.wait("the Service is ready", || {
        let list = machine.ask("services")?;
        list["items"].as_array()?.iter().find(|row| row["name"] == "web" && row["ready"] == 1).cloned()
    });
    assert_eq!(row["verdict"], "ok", "{row}");
    let address = row["addresses"][0].as_str().unwrap().to_owned();

    // The first look has bytes counted from then on.
    let first = machine.wait("counters", || machine.ask("traffic"));
    assert_eq!((&first["node"], &first["mode"]), (&"here".into(), &"nftables".into()), "{first}");
    let fetch = format!("for i in 1 2 3 4 5; do curl -sSf -m 5 -o /dev/null http://{address}/hostname; done");
    machine.wait("it answers", || machine.try_shell(&fetch));
    let counted = |detail: &Value| {
        let endpoint = detail["endpoints"].as_array()?.first()?.clone();
        let enough = |field: &str, least: u64| endpoint[field].as_u64().is_some_and(|number| number >= least);
        (enough("connections", 5) && enough("bytesIn", 500) && enough("bytesOut", 500)).then_some(endpoint)
    };
    let detail = machine
        .wait("the endpoint's numbers", || machine.ask("services/default/web").filter(|it| counted(it).is_some()));
    let endpoint = counted(&detail).unwrap();
    assert_eq!((&endpoint["target"], &endpoint["node"]), (&"pod/web-1".into(), &"here".into()), "{endpoint}");
    let frontend = &detail["frontends"][0];
    assert!(frontend["connections"].as_u64() >= Some(5) && frontend["bytesOut"].as_u64() >= Some(500), "{frontend}");
    assert_eq!(detail["findings"]["verdict"], "ok", "{detail}");

    let traffic = machine.ask("traffic").unwrap();
    let services = traffic["services"].as_array().unwrap();
    let web = services.iter().find(|one| one["name"] == "web").expect("it is told");
    assert_eq!((&web["port"], &web["protocol"]), (&"http".into(), &"TCP".into()), "{web}");
    assert!(web["connections"].as_u64() >= Some(5) && web["endpoints"][0]["connections"].as_u64() >= Some(5), "{web}");

    let nodes = machine.ask("nodes").unwrap();
    let here = node(&nodes).unwrap();
    assert_eq!((&here["name"], &here["pods"], &here["proxy"]["mode"]), (&"here".into(), &1.into(), &"nftables".into()));
    assert!(here["proxy"]["programmed"].as_str().unwrap().parse::<u64>().unwrap() > 0, "{here}");

    let trace = machine.ask("trace?from=pod/web-1&to=svc/web:80").unwrap();
    assert_eq!(trace["verdict"]["action"], "forward", "{trace}");
    traces_like_the_command(&machine, &address);
    let report = machine.ask("explain?name=web&from=pod/web-1&port=80").unwrap();
    assert_eq!(report["verdict"], "ok", "{report}");
    let answer = machine.ask("dns?name=web&from=pod/default/web-1").unwrap();
    assert_eq!(
        (&answer["answer"], &answer["tried"][0]["answers"][0]["data"]),
        (&0.into(), &address.into()),
        "{answer}"
    );
    let missing = machine.ask("dns?name=nobody.default.svc.cluster.local&from=node").unwrap();
    assert_eq!((&missing["answer"], &missing["tried"][0]["code"]), (&Value::Null, &"NXDOMAIN".into()), "{missing}");
    assert!(missing["tried"][0]["why"].as_str().unwrap().contains("nobody"), "{missing}");
    assert_eq!(machine.ask("balancers").unwrap()["items"], Value::Array(Vec::new()));
}

/// The page looks at less than the command does, and says the same.
#[track_caller]
fn traces_like_the_command(machine: &Machine, address: &str) {
    let receivers = ["svc/web:80", &format!("{address}:80"), &format!("{address}:81"), "10.96.0.99:1"];
    let senders = ["pod/web-1", "node", "203.0.113.7"];
    for (from, to) in senders.iter().flat_map(|from| receivers.iter().map(move |to| (from, to))) {
        let page = machine.ask(&format!("trace?from={from}&to={to}")).unwrap();
        // Its exit code says whether the packet arrives.
        let line = format!("$FAIRLEAD trace --from {from} --to {to} --node here -o json || true");
        let command: Value = serde_json::from_str(&machine.shell(&line)).unwrap();
        for part in ["node", "verdict", "reasons", "notes", "mode"] {
            assert_eq!(page[part], command[part], "{part} of {from} to {to}:\n{page}\n{command}");
        }
    }
}
