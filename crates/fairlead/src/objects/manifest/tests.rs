use super::*;

const TWO: &str = "\
# a remark
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  ports:
  - port: 80
    targetPort: http
---
# nothing here
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: a}}
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: b
    labels:
      app.io/x: y
";

#[test]
fn objects_are_found_wherever_they_stand() {
    let found = parse("f.yaml", TWO).expect("valid");
    let names: Vec<String> = found.iter().map(Manifest::name).collect();
    assert_eq!(names, ["service/web", "service/a", "configmap/b"]);
}

#[test]
fn fields_have_lines() {
    let found = parse("f.yaml", TWO).expect("valid");
    let check = |at: usize, field: &str, expected: &str| assert_eq!(found[at].at(field), expected, "{field}");
    check(0, "spec.ports[0].targetPort", "f.yaml:9");
    check(0, "spec.ports[0].nodePort", "f.yaml:8");
    check(0, "spec.type", "f.yaml:6");
    check(0, "spec.ports[7].port", "f.yaml:7");
    check(1, "metadata.name", "f.yaml:16");
    check(2, "metadata.labels[app.io/x]", "f.yaml:22");
}

#[test]
fn mistakes_name_file_and_line() {
    let check = |text: &str, expected: &str| {
        let error = parse("f.yaml", text).expect_err(text).to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    check("a: [", "f.yaml:");
    check("kind: Service\n", "f.yaml:1: apiVersion is not set");
    check("\napiVersion: v1\nkind: Service\nmetadata: {}\n", "f.yaml:4: metadata.name is not set");
    check("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\n- 1\n", "f.yaml:5: an object is wanted here");
    check("apiVersion: v1\nkind: Service\nkind: Pod\n", "f.yaml:");
    check("apiVersion: v1\nkind: Service\nmetadata:\n  name: 8\n", "f.yaml:4: metadata.name is 8, which is no text");
}

#[test]
fn json_is_yaml_too() {
    let found = parse("-", "{\"apiVersion\": \"v1\",\n\"kind\": \"Service\",\n\"metadata\": {\"name\": \"x\"}}")
        .expect("valid");
    assert_eq!(found[0].at("metadata.name"), "-:3");
}

#[test]
fn a_directory_is_read_in_the_order_of_names() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["b.yaml", "a.yml", "c.txt"] {
        let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}\n", &name[..1]);
        std::fs::write(directory.path().join(name), text).expect("a file");
    }
    let found = read(&[directory.path().to_owned()], false).expect("valid");
    assert_eq!(found.iter().map(Manifest::name).collect::<Vec<_>>(), ["configmap/a", "configmap/b"]);
    assert!(read(&[directory.path().join("none.yaml")], false).expect_err("none").to_string().ends_with("none.yaml"));
}
