//! A cluster of files.

use std::path::Path;

use fairlead_api::kinds;
use fairlead_api::source::Selection;
use fairlead_cluster::{Cluster, Delete, Mirror};

use crate::mirror::ConfigMap;

const YAML: &str = r#"
# A comment before everything.
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector: {app: web}
  ports: [{port: 80}]
---
---
# Nothing here.
--- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: other, labels: {app: x}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: web}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
"#;

const JSON: &str = r#"{"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n2"}}]}"#;

fn write(dir: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = dir.join(name);
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        std::fs::write(file, text).expect("a file");
    }
}

#[tokio::test]
async fn files_read_like_a_cluster() {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), &[("a.yaml", YAML), ("more/b.json", JSON), ("README.md", "not: [a manifest")]);
    let (cluster, skipped) = Cluster::from_manifests(dir.path()).expect("manifests");
    let skipped: Vec<_> = skipped.iter().map(|skipped| (skipped.kind.as_str(), skipped.name.as_str())).collect();
    assert_eq!(skipped, [("batch/v1 Job", "web")]);

    let web = cluster.get(&kinds::SERVICE, "default", "web").await.expect("a Service");
    assert_eq!((&web["spec"]["type"], &web["spec"]["ports"][0]["protocol"]), (&"ClusterIP".into(), &"TCP".into()));
    let nodes = cluster.list(&Selection::all(&kinds::NODE)).await.expect("a list");
    assert_eq!(nodes.objects.iter().map(|node| node.key.to_string()).collect::<Vec<_>>(), ["n1", "n2"]);

    let chosen = Selection::all(&kinds::CONFIG_MAP).with_labels("app=x");
    let mut mirror = Mirror::builder(&cluster).with_only::<ConfigMap>(chosen).build();
    mirror.sync().await;
    assert!(mirror.get::<ConfigMap>("other", "settings").is_some());
    assert_eq!(mirror.all::<ConfigMap>().count(), 1);
}

#[tokio::test]
async fn files_are_not_written_to() {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), &[("a.yaml", YAML)]);
    let (cluster, _) = Cluster::from_manifests(&dir.path().join("a.yaml")).expect("manifests");
    let error = cluster.delete(&kinds::SERVICE, "default", "web", &Delete::default()).await.expect_err("refused");
    let message = "the objects come from files and cannot be changed; a cluster is needed for this";
    assert_eq!(error.to_string(), message);
    let missing = cluster.get(&kinds::SERVICE, "default", "other").await.expect_err("not found");
    assert_eq!(missing.to_string(), "services \"other\" not found");
}

#[test]
fn mistakes_in_files_are_told_with_their_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let table = [
        ("a: [", "document 1: "),
        ("kind: Service", "document 1: apiVersion or kind is not set"),
        (
            "apiVersion: v1\nkind: Node\n---\napiVersion: v1\nkind: Service\nspec: 3",
            "document 1: a Node without metadata.name",
        ),
        ("{\"apiVersion\": \"v1\"", "document 1: "),
    ];
    for (text, expected) in table {
        write(dir.path(), &[("a.yaml", text)]);
        let error = Cluster::from_manifests(dir.path()).expect_err(expected).to_string();
        assert!(error.contains(&format!("a.yaml, {expected}")), "{error}");
    }
    assert!(Cluster::from_manifests(&dir.path().join("nowhere")).is_err());
}
