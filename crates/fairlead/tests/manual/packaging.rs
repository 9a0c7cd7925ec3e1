//! Is what is packaged sound: do chart and manifests agree, does everything they name exist, do units start what the program has?

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use fairlead_testkit::project;
use serde_json::Value;

fn packaging(path: &str) -> PathBuf {
    project().join("packaging").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(packaging(path)).unwrap_or_else(|error| panic!("packaging/{path}: {error}"))
}

/// The objects of a file, by kind, namespace and name.
fn objects(text: &str) -> BTreeMap<String, Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let name = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let key = |object: &Value| format!("{} {}/{}", object["kind"], name(object, "namespace"), name(object, "name"));
    documents.into_iter().filter(|object| !object.is_null()).map(|object| (key(&object), object)).collect()
}

/// What Helm makes of a template that has nothing but `{{ .Values.a.b }}` and an `if` around all of it.
fn render(template: &str, values: &Value) -> String {
    let mut text = template.to_owned();
    if let Some(rest) = text.strip_prefix("{{- if .Values.") {
        let (condition, body) = rest.split_once(" }}\n").expect("the condition ends");
        assert_eq!(value(values, condition), &Value::Bool(true), "{condition}: on unless switched off");
        text = body.strip_suffix("{{- end }}\n").expect("the condition has an end").to_owned();
    }
    while let Some(at) = text.find("{{ .Values.") {
        let end = at + text[at..].find(" }}").expect("it ends");
        let path = text[at + "{{ .Values.".len()..end].to_owned();
        let with = value(values, &path).as_str().unwrap_or_else(|| panic!("{path} is no text"));
        text.replace_range(at..end + 3, with);
    }
    assert!(!text.contains("{{"), "a template of another form:\n{text}");
    text
}

fn value<'a>(values: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(values, |value, key| &value[key])
}

#[test]
fn the_chart_makes_the_manifests_unless_told_otherwise() {
    let values: Value = serde_saphyr::from_str(&read("helm/fairlead/values.yaml")).unwrap();
    for part in ["rbac", "proxy", "dns", "balancer"] {
        let chart = render(&read(&format!("helm/fairlead/templates/{part}.yaml")), &values);
        let plain = read(&format!("kubernetes/{part}.yaml"));
        assert_eq!(objects(&chart), objects(&plain), "{part}");
    }
}

#[test]
fn what_manifests_name_is_there() {
    let accounts = objects(&read("kubernetes/rbac.yaml"));
    for part in ["proxy", "dns", "balancer"] {
        let sets = objects(&read(&format!("kubernetes/{part}.yaml")));
        let set = sets.values().next().expect("a DaemonSet");
        let pod = &set["spec"]["template"]["spec"];
        let account = format!("\"ServiceAccount\" kube-system/{}", pod["serviceAccountName"].as_str().unwrap());
        assert!(accounts.contains_key(&account), "{account}");
        let labels = set["spec"]["template"]["metadata"]["labels"].as_object().unwrap();
        let selected = set["spec"]["selector"]["matchLabels"].as_object().unwrap();
        assert!(selected.iter().all(|(key, value)| labels.get(key) == Some(value)), "{part}");
        let words: Vec<&str> =
            pod["containers"][0]["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        knows(&words);
    }
}

#[test]
fn units_start_what_the_program_has() {
    for unit in fs::read_dir(packaging("systemd")).unwrap().flatten() {
        let text = fs::read_to_string(unit.path()).unwrap();
        let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/fairlead ")).unwrap();
        knows(&start.split(' ').collect::<Vec<_>>());
        for section in ["[Unit]", "[Service]", "[Install]"] {
            assert!(text.lines().any(|line| line == section), "{}: {section}", unit.path().display());
        }
    }
}

/// The program has this command and these flags.
#[track_caller]
fn knows(words: &[&str]) {
    let help = Command::new(env!("CARGO_BIN_EXE_fairlead")).args([words[0], "--help"]).output().unwrap();
    assert!(help.status.success(), "{words:?}");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for flag in words[1..].iter().filter_map(|word| word.strip_prefix("--")?.split(['=', ' ']).next()) {
        assert!(help.contains(&format!("--{flag}")), "{words:?}: {flag}");
    }
}

#[test]
fn a_difference_between_chart_and_manifest_would_be_seen() {
    let values = serde_json::json!({"a": {"enabled": true, "pool": "x"}});
    let template = "{{- if .Values.a.enabled }}\nkind: A\npool: {{ .Values.a.pool }}\n{{- end }}\n";
    assert_eq!(render(template, &values), "kind: A\npool: x\n");
    assert_ne!(objects(&render(template, &values)), objects("kind: A\npool: y\n"));
}
