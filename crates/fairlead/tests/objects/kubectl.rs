//! The same command given to kubectl prints the same.

use fairlead_testkit::{Kubectl, need, need::skip};

use crate::house::{House, Told, told};

/// Ages tick on between two commands: they are compared again then.
const TRIES: usize = 8;

/// A kubectl of the version whose layout ours is, if there is one.
fn kubectl(test: &str) -> Option<String> {
    if !need(test, "kubectl") {
        return None;
    }
    let found = Kubectl::find().filter(|kubectl| kubectl.minor >= 36);
    if found.is_none() {
        skip(test, "kubectl-1.36");
    }
    found.map(|kubectl| kubectl.path.display().to_string())
}

/// What both say, of which `part` must be the same.
fn check(house: &House, kubectl: &str, line: &str, part: impl Fn(&Told) -> String) {
    let mut last = (String::new(), String::new());
    for _ in 0..TRIES {
        let theirs = told(house.command(kubectl, line).output().expect("kubectl runs"));
        let ours = house.run(line);
        assert_eq!(theirs.fine, ours.fine, "{line}: {theirs:?}\n{ours:?}");
        last = (part(&theirs), part(&ours));
        if last.0 == last.1 {
            return;
        }
    }
    assert_eq!(last.0, last.1, "{line}");
}

fn whole(told: &Told) -> String {
    format!("{}\n{}", told.printed, told.complained)
}

#[test]
fn tables_and_objects_are_printed_as_kubectl_prints_them() {
    let Some(kubectl) = kubectl("objects::kubectl::tables") else { return };
    let house = House::furnished();
    let lines = [
        "get svc",
        "get svc -A",
        "get svc -A -o wide",
        "get services --no-headers",
        "get service web --show-labels -L app,x.io/tier",
        "get svc web -o yaml",
        "get svc web -o json",
        "get svc -A -o yaml",
        "get svc -A -o json",
        "get svc web kubernetes -o yaml",
        "get svc -o name",
        "get svc web --show-managed-fields -o yaml",
        "get svc -l app=web -o name",
        "get svc -l 'app in (web,db)' -A",
        "get svc --field-selector metadata.name=web",
        "get svc/web pod/web-1",
        "get svc,endpointslices,pods",
        "get svc,pods -A --no-headers",
        "get pods -o wide",
        "get pods -o yaml",
        "get cm texts -o yaml",
        "get cm -A -o json",
        "get secrets",
        "get ns",
        "get ns other -o yaml",
        "get nodes",
        "get events",
        "get events -A -o wide",
        "get endpointslices -o name",
        "get endpointslices.discovery.k8s.io -o wide",
        "get clusterroles",
        "get clusterrole view -o yaml",
        "get clusterrole cluster-admin -o json",
        "get all",
        "get all -A -o wide",
        "get pods -n none",
        "get svc none --ignore-not-found",
        "get svc -n none -o yaml",
        "get svc -n none -o name",
        "get ipaddresses",
        "get servicecidrs -o wide",
        "get leases -A",
        "get serviceaccounts -A",
        "events",
        "events -A",
        "events --for svc/web",
        "events --types Warning",
        "events -n none",
        "describe endpointslice web-1",
        "describe pod web-1",
        "describe cm texts",
        "describe secret keys",
    ];
    for line in lines {
        check(&house, &kubectl, line, whole);
    }
}

#[test]
fn a_service_is_described_as_kubectl_does_and_then_more() {
    let Some(kubectl) = kubectl("objects::kubectl::describe") else { return };
    let house = House::furnished();
    for line in ["describe svc web", "describe svc/kubernetes", "describe svc db -n other"] {
        let before = |told: &Told| told.printed.split("\nFairlead:\n").next().unwrap_or_default().to_owned();
        check(&house, &kubectl, line, before);
    }
    let told = house.run("describe svc web");
    for word in
        ["4 of 5 endpoints", "10.244.1.5  pod/web-1  n1  ready", "not ready", "fairlead explain svc/web -n default"]
    {
        assert!(told.printed.contains(word), "no {word:?} in\n{}", told.printed);
    }
}

#[test]
fn deletions_are_told_as_kubectl_tells_them() {
    let Some(kubectl) = kubectl("objects::kubectl::delete") else { return };
    let house = House::furnished();
    for line in [
        "delete svc/web --dry-run=server",
        "delete ns other --dry-run=server",
        "delete endpointslices web-1 --dry-run=server",
    ] {
        let theirs = told(house.command(&kubectl, line).output().expect("kubectl runs"));
        let ours = house.run(&line.replace("=server", ""));
        assert_eq!((theirs.fine, theirs.printed), (ours.fine, ours.printed), "{line}");
    }
}

/// Texts made of what is hard in YAML.
#[test]
fn any_text_is_printed_as_kubectl_prints_it() {
    let Some(kubectl) = kubectl("objects::kubectl::texts") else { return };
    let house = House::new();
    const PIECES: [&str; 40] = [
        "a",
        "word",
        "Yes",
        "no",
        "null",
        "~",
        "0",
        "1",
        "8",
        "9",
        "0x",
        "e",
        "E",
        "+",
        "-",
        ".",
        "_",
        ":",
        ": ",
        " ",
        "  ",
        "#",
        " #",
        "\n",
        "\n\n",
        "\t",
        "'",
        "\"",
        "\\",
        "é",
        "😀",
        "[",
        "{",
        "&",
        "*",
        "!",
        "%",
        "@",
        "<<",
        "2026-11-16",
    ];
    let mut random = fastrand::Rng::with_seed(8);
    for round in 0..8 {
        let mut data = serde_json::Map::new();
        for at in 0..400 {
            let text: String = (0..random.usize(..8)).map(|_| PIECES[random.usize(..PIECES.len())]).collect();
            let long = if random.u8(..10) == 0 { "some words ".repeat(random.usize(..20)) } else { String::new() };
            data.insert(format!("k{at}"), (long + &text).into());
        }
        let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{round}")}, "data": data});
        let made = house.fed("apply -f -", &map.to_string());
        assert!(made.fine, "{}", made.complained);
        for form in ["yaml", "json"] {
            check(&house, &kubectl, &format!("get cm c{round} -o {form}"), whole);
        }
    }
}
