//! What is said when it does not work: what, where, and what to do.

use std::process::Command;

use crate::house::{House, PROGRAM, told};

#[test]
fn a_wrong_word_is_answered_with_the_right_one() {
    let house = House::new();
    let check = |line: &str, expected: &str| {
        let told = house.run(line);
        assert!(!told.fine && told.complained.starts_with(expected), "{line}: {}", told.complained);
    };
    check("get scv", "fairlead: there is no kind \"scv\"; did you mean services (svc)?\n");
    check("get svc/web/x/y", "fairlead: \"svc/web/x/y\" names no object: want KIND/NAME");
    check("get svc web -A", "fairlead: an object is named in one namespace: leave out -A, or the name\n");
    check("get svc web -l a=b", "fairlead: objects are either named or selected");
    check(
        "get svc none",
        "fairlead: services \"none\" not found\n  help: `fairlead get services -A` shows which there are\n",
    );
    check("get svc,pods -w", "fairlead: one kind, or one object, is watched at a time\n");
    check("get svc -l '!!'", "fairlead: ");
    check("events --for svc", "fairlead: --for: which one of the services? Say its name, as in svc/NAME\n");
    check("get", "error: the following required arguments were not provided:\n  <WHAT>...\n");
    check(
        "descirbe svc",
        "error: unrecognized subcommand 'descirbe'\n\n  tip: a similar subcommand exists: 'describe'",
    );
}

#[test]
fn a_cluster_that_cannot_be_reached_is_named_with_a_way_out() {
    let house = House::new();
    let kubeconfig = std::fs::read_to_string(house.server.kubeconfig()).expect("a kubeconfig");
    let port = house.server.url().rsplit(':').next().expect("a port").to_owned();
    house.file("gone.kubeconfig", &kubeconfig.replace(&port, "1"));
    house.file("junk.kubeconfig", "hello\n");
    let strangers: Vec<&str> = kubeconfig.lines().filter(|line| !line.contains("client-")).collect();
    house.file("stranger.kubeconfig", &strangers.join("\n"));
    let check = |line: &str, words: &[&str]| {
        let told = house.run(line);
        assert!(!told.fine && words.iter().all(|word| told.complained.contains(word)), "{line}: {}", told.complained);
    };
    check("get svc --kubeconfig none", &["fairlead: --kubeconfig none: No such file or directory"]);
    check("get svc --kubeconfig junk.kubeconfig", &["fairlead: --kubeconfig junk.kubeconfig: line 1"]);
    check(
        "get svc --kubeconfig gone.kubeconfig",
        &[
            "https://127.0.0.1:1 does not answer: ",
            "Connection refused",
            "\n  help: nothing listens there: start it with `fairlead up`",
        ],
    );
    check(
        "status --kubeconfig gone.kubeconfig",
        &[
            "fairlead: the API server does not answer: ",
            "Connection refused",
            "\n  help: nothing listens there: start it with `fairlead up`",
        ],
    );
    check(
        "get svc --kubeconfig stranger.kubeconfig",
        &["fairlead: Unauthorized\n  help: the server does not know whom"],
    );
}

#[test]
fn what_was_wrong_before_the_server_went_away_is_told_too() {
    let house = House::new();
    let kubeconfig = std::fs::read_to_string(house.server.kubeconfig()).expect("a kubeconfig");
    let port = house.server.url().rsplit(':').next().expect("a port").to_owned();
    house.file("gone.kubeconfig", &kubeconfig.replace(&port, "1"));
    let map = |name: &str, namespace: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\n---\n")
    };
    let all = map("astray", "elsewhere") + &map("first", "default") + &map("second", "default");
    let told = house.fed("apply -f - -n default --kubeconfig gone.kubeconfig", &all);
    assert!(!told.fine, "{told:?}");
    let complaints: Vec<&str> = told.complained.lines().filter(|line| line.starts_with("fairlead: ")).collect();
    let [astray, gone] = complaints[..] else { panic!("not two: {complaints:#?}") };
    assert!(astray.contains("configmap/astray is in namespace \"elsewhere\""), "{astray}");
    assert!(gone.contains("does not answer: "), "nobody is asked again: {gone}");
}

#[test]
fn without_any_cluster_it_says_how_to_have_one() {
    let home = tempfile::tempdir().expect("a directory");
    let run = |kubeconfig: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["get", "svc"]).env("HOME", home.path()).env("KUBECONFIG", kubeconfig);
        command.env_remove("XDG_STATE_HOME").env_remove("KUBERNETES_SERVICE_HOST");
        told(command.output().expect("the program runs"))
    };
    let named = run("/nowhere/at/all");
    assert!(
        named.complained.starts_with("fairlead: $KUBECONFIG=/nowhere/at/all: No such file"),
        "{}",
        named.complained
    );
    if std::path::Path::new("/var/lib/fairlead/admin.kubeconfig").exists() {
        return;
    }
    let none = run("");
    assert!(none.complained.starts_with("fairlead: which cluster? "), "{}", none.complained);
}

#[test]
fn who_may_not_is_told_what_it_takes() {
    let house = House::new();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let client = house.server.client();
    client.request("POST", accounts, r#"{"metadata": {"name": "poor"}}"#).expect("an answer");
    let answer = client.request("POST", &format!("{accounts}/poor/token"), r#"{"spec": {}}"#).expect("an answer");
    let answer: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
    let token = answer["status"]["token"].as_str().expect("a token");
    let kubeconfig = std::fs::read_to_string(house.server.kubeconfig()).expect("a kubeconfig");
    let lines: Vec<String> = kubeconfig
        .lines()
        .filter(|line| !line.contains("client-key-data"))
        .map(|line| match line.find("client-certificate-data") {
            Some(at) => format!("{}token: {token}", &line[..at]),
            None => line.to_owned(),
        })
        .collect();
    house.file("poor.kubeconfig", &lines.join("\n"));
    let told = house.run("get svc --kubeconfig poor.kubeconfig");
    let words =
        ["services is forbidden: User \"system:serviceaccount:default:poor\" cannot list", "help: this takes a role"];
    assert!(words.iter().all(|word| told.complained.contains(word)), "{}", told.complained);
}
