//! Objects made of files: what is told, what a mistake says, and that a mistake changes nothing.

use crate::house::House;

const WEB: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - port: 80\n";

#[test]
fn files_directories_and_standard_input_are_applied() {
    let house = House::new();
    house.file("all/b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n");
    house.file("all/a.json", r#"{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]}"#);
    house.file("all/deep/d.yml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n");
    let check = |line: &str, expected: &str| {
        let told = house.run(line);
        assert_eq!((told.printed.as_str(), told.complained.as_str()), (expected, ""), "{line}");
    };
    check(
        "apply -f all --dry-run",
        "configmap/a created (server dry run)\nconfigmap/b created (server dry run)\nconfigmap/c created (server dry run)\n",
    );
    check("get cm -o name", "");
    check("apply -f all", "configmap/a created\nconfigmap/b created\nconfigmap/c created\n");
    check(
        "apply -f all -R",
        "configmap/a unchanged\nconfigmap/b unchanged\nconfigmap/c unchanged\nconfigmap/d created\n",
    );
    let changed = house.fed("apply -f -", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: y1}\n");
    assert_eq!(changed.printed, "configmap/a configured\n");
    check(
        "delete -f all -R",
        "configmap \"a\" deleted from default namespace\nconfigmap \"b\" deleted from default namespace\nconfigmap \"c\" deleted from default namespace\nconfigmap \"d\" deleted from default namespace\n",
    );
    check("get cm -o name", "");
}

#[test]
fn a_mistake_has_file_line_and_field_and_the_others_are_applied() {
    let house = House::new();
    let bad = format!(
        "{WEB}---\napiVersion: v1\nkind: Service\nmetadata: {{name: bad}}\nspec:\n  ports:\n  - port: 80\n    targetPort: 99999\n\
         ---\napiVersion: v1\nkind: Service\nmetadata: {{name: typo}}\nspec:\n  prots: []\n\
         ---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: d}}\n\
         ---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: lost, namespace: none}}\n"
    );
    house.file("f.yaml", &bad);
    let told = house.run("apply -f f.yaml");
    assert!(!told.fine);
    assert_eq!(told.printed, "service/web created\n", "{}", told.complained);
    for word in [
        "f.yaml:15: spec.ports[0].targetPort: Invalid value: 99999: must be between 1 and 65535, inclusive",
        "service/bad is invalid, nothing of it was changed",
        "f.yaml:21: service/typo has no field spec.prots, nothing of it was changed; did you mean ports?",
        "f.yaml:24: the server has no kind \"Job\" in \"batch/v1\"",
        "namespaces \"none\" not found",
    ] {
        assert!(told.complained.contains(word), "no {word:?} in\n{}", told.complained);
    }
    assert_eq!(house.run("get svc -o name").printed, "service/kubernetes\nservice/web\n");
}

#[test]
fn a_text_that_is_no_manifest_is_refused_before_anything_happens() {
    let house = House::new();
    let check = |text: &str, expected: &str| {
        house.file("f.yaml", &format!("{WEB}---\n{text}"));
        let told = house.run("apply -f f.yaml");
        assert!(!told.fine && told.printed.is_empty(), "{told:?}");
        assert!(told.complained.starts_with(&format!("fairlead: {expected}")), "{}", told.complained);
    };
    check("a: [\n", "f.yaml:");
    check("kind: Service\nmetadata: {name: x}\n", "f.yaml:9: apiVersion is not set\n");
    check("apiVersion: v1\nkind: Service\nmetadata: {labels: {a: b}}\n", "f.yaml:11: metadata.name is not set");
    assert_eq!(house.run("get svc -o name").printed, "service/kubernetes\n");
    assert!(house.run("apply -f none.yaml").complained.starts_with("fairlead: none.yaml: No such file"));
}

#[test]
fn fields_of_others_are_left_to_them_unless_told_otherwise() {
    let house = House::new();
    house.fed("apply -f -", WEB);
    let (path, client) = ("/api/v1/namespaces/default/services/web", house.server.client());
    let there = client.get(path).expect("an answer").body;
    let changed = there.replace(r#""sessionAffinity":"None""#, r#""sessionAffinity":"ClientIP""#);
    let answer = client.request("PUT", &format!("{path}?fieldManager=somebody"), &changed);
    assert_eq!(answer.expect("an answer").status, 200);
    assert_eq!(
        house.fed("apply -f -", WEB).printed,
        "service/web unchanged\n",
        "what it does not name is not its matter"
    );

    house.file("f.yaml", &format!("{WEB}  sessionAffinity: None\n"));
    let told = house.run("apply -f f.yaml");
    assert!(!told.fine);
    for word in [
        "service/web sets fields that others have set",
        "f.yaml:8: spec.sessionAffinity: conflict with \"somebody\"",
        "--force-conflicts",
    ] {
        assert!(told.complained.contains(word), "no {word:?} in\n{}", told.complained);
    }
    assert!(house.run("get svc web -o yaml").printed.contains("sessionAffinity: ClientIP"));
    assert_eq!(house.run("apply -f f.yaml --force-conflicts").printed, "service/web configured\n");
    assert!(house.run("get svc web -o yaml").printed.contains("sessionAffinity: None"));
}

#[test]
fn a_namespace_is_the_objects_own_or_the_one_that_is_said() {
    let house = House::new();
    house.fed("apply -f -", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n");
    let own = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  namespace: a\n";
    assert!(
        house
            .fed("apply -f - -n default", own)
            .complained
            .contains("-:5: configmap/c is in namespace \"a\", and -n says \"default\"")
    );
    assert!(house.fed("apply -f - -n a", own).fine);
    let none = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n";
    assert!(house.fed("apply -f - -n a", none).fine);
    assert_eq!(house.run("get cm -n a -o name").printed, "configmap/c\nconfigmap/d\n");
}

#[test]
fn a_deletion_waits_and_says_what_for() {
    let house = House::new();
    let held = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: held\n  finalizers: [example.com/wait]\n";
    house.fed("apply -f -", held);
    let told = house.run("delete cm held --timeout 1");
    assert!(!told.fine && told.printed == "configmap \"held\" deleted from default namespace\n", "{told:?}");
    assert!(
        told.complained.contains("still there: configmap/held, held by finalizers: example.com/wait"),
        "{}",
        told.complained
    );
    assert!(house.run("delete cm held --no-wait").fine);
    let check = |line: &str, expected: &str| {
        let told = house.run(line);
        assert!(told.complained.starts_with(expected), "{line}: {}", told.complained);
    };
    check("delete cm", "fairlead: which configmaps? Name them, select some with -l, or say --all\n");
    check("delete cm none", "fairlead: configmaps \"none\" not found\n");
    check("delete cm none --ignore-not-found", "");
    check("delete cm held --all", "fairlead: --all means all of a kind");
}
