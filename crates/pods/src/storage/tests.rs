use serde_json::json;

use super::*;

fn limits(spec: Value) -> Limits {
    Limits::of(&json!({"spec": spec})).expect("limits")
}

fn usage(volumes: &[(&str, u64)], containers: &[(&str, u64)]) -> Usage {
    let owned = |list: &[(&str, u64)]| list.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
    Usage { volumes: owned(volumes), containers: owned(containers) }
}

#[test]
fn pods_without_limits_are_not_measured() {
    assert_eq!(Limits::of(&json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}})), None);
    let memory = json!({"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}});
    assert_eq!(Limits::of(&json!({"spec": {"volumes": [memory]}})), None);
}

#[test]
fn each_limit_has_its_message() {
    let container = |name: &str, limit: &str| json!({"name": name, "resources": {"limits": {RESOURCE: limit}}});
    let volumes = json!([{"name": "v", "emptyDir": {"sizeLimit": "1Ki"}}, {"name": "w", "emptyDir": {}}]);
    let limits = limits(json!({"volumes": volumes, "containers": [container("a", "2Ki"), container("b", "1Ki")]}));
    assert_eq!(limits.judge(&usage(&[("v", 1024), ("w", 2048)], &[])), None);
    let message = "Usage of EmptyDir volume \"v\" exceeds the limit \"1Ki\". ";
    assert_eq!(limits.judge(&usage(&[("v", 1025)], &[])).as_deref(), Some(message));
    let message = "Pod ephemeral local storage usage exceeds the total limit of containers 3072. ";
    assert_eq!(limits.judge(&usage(&[("v", 1024), ("w", 2048)], &[("a", 1)])).as_deref(), Some(message));
    let message = "Container b exceeded its local ephemeral storage limit \"1Ki\". ";
    assert_eq!(limits.judge(&usage(&[], &[("a", 1025), ("b", 1025)])).as_deref(), Some(message));
}

#[test]
fn a_folder_uses_what_is_in_it_and_not_what_links_lead_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let file = |path: PathBuf, bytes: usize| fs::write(path, vec![1; bytes]).expect("written");
    fs::create_dir_all(at("volume/deep/deeper")).expect("folders");
    fs::create_dir(at("outside")).expect("a folder");
    file(at("volume/deep/deeper/file"), 100_000);
    let before = used(&at("volume"));
    assert!((100_000..200_000).contains(&before), "{before}");
    file(at("outside/file"), 1_000_000);
    std::os::unix::fs::symlink(at("outside"), at("volume/link")).expect("a link");
    let after = used(&at("volume"));
    assert!(after < before + 100_000, "{after}");
    assert_eq!(used(&at("none")), 0);
}
