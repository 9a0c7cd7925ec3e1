//! The same command given to kubectl prints the same.

use std::time::Instant;

use fairlead_testkit::{Kubectl, need, need::skip};

use crate::house::{House, Told, told};

/// A column gets wider when an age gets longer between two commands: they are compared again then.
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
        let began = Instant::now();
        let theirs = told(house.command(kubectl, line).output().expect("kubectl runs"));
        let ours = house.run(line);
        assert_eq!(theirs.fine, ours.fine, "{line}: {theirs:?}\n{ours:?}");
        let passed = began.elapsed().as_secs() + 1;
        last = (part(&theirs), part(&ours));
        last.1 = set_back(&last.1, &last.0, passed);
        if last.0 == last.1 {
            return;
        }
    }
    assert_eq!(last.0, last.1, "{line}");
}

/// What was said later, with the ages of what was said first: those that are no older than the seconds that have passed between.
/// Nothing else is changed.
fn set_back(later: &str, first: &str, passed: u64) -> String {
    let lines = later.split('\n').zip(first.split('\n').map(Some).chain(std::iter::repeat(None)));
    let lines: Vec<String> =
        lines.map(|(later, first)| line_set_back(later, first.unwrap_or_default(), passed)).collect();
    lines.join("\n")
}

fn line_set_back(later: &str, first: &str, passed: u64) -> String {
    let mut firsts = first.split_whitespace();
    let mut line = String::new();
    let mut rest = later;
    while !rest.is_empty() {
        let word = rest.split(char::is_whitespace).next().unwrap_or_default();
        let blanks = &rest[word.len()..];
        let blanks = &blanks[..blanks.len() - blanks.trim_start().len()];
        rest = &rest[word.len() + blanks.len()..];
        if word.is_empty() {
            line.push_str(blanks);
            continue;
        }
        let other = firsts.next().filter(|other| has_aged(other, word, passed)).unwrap_or(word);
        line.push_str(other);
        // In a table, what stands behind it stays where it was; in a sentence there is one blank.
        let room = (word.len() + blanks.len()).saturating_sub(other.len());
        match other == word || rest.is_empty() || blanks == " " {
            true => line.push_str(blanks),
            false => line.push_str(&" ".repeat(room)),
        }
    }
    line
}

/// Whether a word is an age, and another the same some seconds later.
fn has_aged(first: &str, later: &str, passed: u64) -> bool {
    let (Some((first, step)), Some((later, _))) = (age(first), age(later)) else { return false };
    first <= later && later < first + step + passed
}

/// The seconds of `90s`, `2m30s` or, in what happened several times, `5m)`; and of what it counts last.
fn age(word: &str) -> Option<(u64, u64)> {
    let (mut all, mut step, mut number) = (0, 0, String::new());
    for letter in word.trim_end_matches(')').chars() {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        step = match letter {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'y' => 31_536_000,
            _ => return None,
        };
        all += std::mem::take(&mut number).parse::<u64>().ok()? * step;
    }
    (step > 0 && number.is_empty()).then_some((all, step))
}

#[test]
fn only_ages_may_differ_and_only_by_the_time_that_has_passed() {
    let check = |first: &str, later: &str, same: bool| {
        assert_eq!(set_back(later, first, 2) == first, same, "{first:?} {later:?}");
    };
    check("web   9s    x", "web   10s   x", true);
    check("web   9s", "web   11s", true);
    check("web   9s", "web   8s", false);
    check("web   9s", "web   13s", false);
    check("119s (x4 over 5m)", "2m (x4 over 5m)", true);
    check("Age:  3m\nweb", "Age:  4m\nweb", true);
    check("cpu 500m", "cpu 400m", false);
    check("cpu 500m", "cpu 600m", false);
    check("web   9s    x", "web   9s   x", false);
    check("web   9s", "web   9s\n", false);
    check("  web   9s\n", "  web   10s\n", true);
    check("web", "db", false);
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
