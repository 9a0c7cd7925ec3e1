//! `fairlead env` as people call it, against a real server.

use std::process::Command;

use fairlead_testkit::Server;
use serde_json::{Value, json};

struct House {
    server: Server,
}

impl House {
    fn post(&self, path: &str, object: &Value) {
        let answer = self.server.client().request("POST", path, &object.to_string()).expect("an answer");
        assert_eq!(answer.status, 201, "{}", answer.body);
    }

    /// Whether it ended well, what it printed, and what it complained of.
    fn env(&self, line: &str) -> (bool, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairlead"));
        command.arg("env").args(line.split_whitespace()).arg("--kubeconfig").arg(self.server.kubeconfig());
        let output = command.output().expect("the program runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn a_containers_variables_are_shown_or_why_it_has_none() {
    let house = House { server: Server::start(env!("CARGO_BIN_EXE_fairlead"), &["--store", "memory"]) };
    let (pods, config_maps) = ("/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps");
    let service = json!({"metadata": {"name": "my-db"}, "spec": {"clusterIP": "10.96.7.7", "ports": [{"port": 5432}]}});
    house.post("/api/v1/namespaces/default/services", &service);
    let env = json!([
        {"name": "URL", "value": "db://$(MY_DB_SERVICE_HOST)"},
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}},
        {"name": "LINES", "value": "1\n2"},
        {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k"}}},
    ]);
    let containers = json!([
        {"name": "first", "image": "host", "env": env},
        {"name": "second", "image": "host", "env": [{"name": "ONLY", "value": "mine"}]},
    ]);
    let spec = json!({"containers": containers});
    house.post(pods, &json!({"metadata": {"name": "web", "labels": {"a": "1"}}, "spec": spec}));

    let (fine, _, told) = house.env("pod/web");
    let expect = "fairlead: the container cannot start (CreateContainerConfigError): configmap \"cm\" not found\n";
    assert_eq!((fine, told.as_str()), (false, expect));
    house.post(config_maps, &json!({"metadata": {"name": "cm"}, "data": {"k": "v"}}));
    let (fine, printed, told) = house.env("pod/web");
    assert!(fine, "{told}");
    let begins = "URL=db://10.96.7.7\nA=1\nLINES=\"1\\n2\"\nKEY=v\nKUBERNETES_SERVICE_HOST=10.96.0.1\n";
    assert!(printed.starts_with(begins), "{printed}");
    assert!(printed.contains("\nMY_DB_PORT_5432_TCP=tcp://10.96.7.7:5432\n"), "{printed}");

    let (_, printed, _) = house.env("web -c second -n default");
    assert!(printed.starts_with("ONLY=mine\n"), "{printed}");
    let (fine, _, told) = house.env("web -c third");
    assert!(!fine && told.ends_with("the Pod has no such container; it has first, second\n"), "{told}");
    let (fine, _, told) = house.env("none");
    assert!(!fine && told.starts_with("fairlead: pods \"none\" not found\n"), "{told}");
}
