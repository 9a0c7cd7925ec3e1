//! Can a store be copied while its server runs, and be brought back from the copy?

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use fairlead_testkit::Server;
use fairlead_testkit::https::Client;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairlead");
const PATH: &str = "/api/v1/namespaces/default/services";

#[test]
fn a_copy_taken_while_the_server_runs_becomes_a_store_again() {
    let server = Server::start(PROGRAM, &[]);
    let before = create(&server.client(), "before");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let copy = folder.path().join("copy");
    succeeds(&run("backup", &copy, &server.data_dir()));
    create(&server.client(), "after");
    let mode = fs::metadata(&copy).expect("a copy").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "Secrets are in it: mode {mode:o}");

    let restored = Server::start_on(PROGRAM, &[], |data_dir| succeeds(&run("restore", &copy, data_dir)));
    let client = restored.client();
    assert_eq!(get(&client, "before"), before, "what was copied is as it was");
    assert_eq!(client.get(&format!("{PATH}/after")).expect("an answer").status, 404, "what came later is not there");
    let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse::<u64>().ok());
    let again = create(&client, "again");
    assert!(
        version(&again) > version(&create(&server.client(), "last")),
        "versions clients have seen do not come again"
    );
    assert_ne!(again["spec"]["clusterIP"], before["spec"]["clusterIP"], "addresses in the copy are taken");
}

#[test]
fn neither_a_copy_nor_a_store_is_written_over() {
    let server = Server::start(PROGRAM, &[]);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let copy = folder.path().join("copy");
    fs::write(&copy, "precious").expect("a file");
    fails(&run("backup", &copy, &server.data_dir()), "already there");
    assert_eq!(fs::read_to_string(&copy).expect("a file"), "precious");
    let fresh = folder.path().join("fresh");
    succeeds(&run("backup", &fresh, &server.data_dir()));
    fails(&run("restore", &fresh, &server.data_dir()), "store.redb");
    fails(&run("backup", &folder.path().join("other"), &folder.path().join("nowhere")), "nothing to copy");
    fails(&run("restore", &copy, &folder.path().join("data")), "copy");
    assert!(!folder.path().join("data/store.redb").exists(), "what is no copy leaves nothing behind");
}

fn run(command: &str, file: &Path, data_dir: &Path) -> Output {
    let config = data_dir.with_file_name("no-config.yaml");
    fs::write(&config, "{}").expect("a config file");
    let mut program = Command::new(PROGRAM);
    program.arg(command).arg(file).arg("--data-dir").arg(data_dir).arg("--config").arg(config);
    program.output().expect("the program runs")
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn fails(output: &Output, saying: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(saying), "{said}");
}

fn create(client: &Client, name: &str) -> Value {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]},
    });
    let answer = client.request("POST", PATH, &service.to_string()).expect("an answer");
    assert_eq!(answer.status, 201, "{}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

fn get(client: &Client, name: &str) -> Value {
    let answer = client.get(&format!("{PATH}/{name}")).expect("an answer");
    serde_json::from_str(&answer.body).expect("JSON")
}
