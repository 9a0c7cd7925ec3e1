use serde_json::json;

use super::*;

fn limits(spec: Value) -> Limits {
    Limits::of(&json!({"spec": spec})).expect("limits")
}

fn usage(volumes: &[(&str, u64)], containers: &[(&str, u64)]) -> Usage {
    let owned = |list: &[(&str, u64)]| list.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
    Usage { volumes: owned(volumes), containers: owned(containers) }
}

fn used(folder: &Path) -> u64 {
    super::used(folder, MOST_FILES, &CancellationToken::new())
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

#[test]
fn a_file_with_several_links_is_counted_once() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), vec![1; 1_000_000]).expect("written");
    let before = used(folder.path());
    for link in 0..10 {
        fs::hard_link(folder.path().join("file"), folder.path().join(format!("link-{link}"))).expect("a link");
    }
    let after = used(folder.path());
    assert!(after < before + 1_000_000, "{before} {after}");
}

#[test]
fn a_folder_that_cannot_be_counted_exceeds_every_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("many")).expect("a folder");
    for file in 0..5 {
        File::create(at(&format!("many/{file}"))).expect("a file");
    }
    let count = |most| super::used(&at("many"), most, &CancellationToken::new());
    assert_eq!(count(4), TOO_LARGE);
    assert!(count(5) < TOO_LARGE);

    // The folder itself is the first level.
    let nested = |levels: usize| PathBuf::from_iter(std::iter::repeat_n("d", levels));
    fs::create_dir_all(at("deep").join(nested(MOST_LEVELS - 1))).expect("folders");
    assert!(used(&at("deep")) < TOO_LARGE);
    fs::create_dir_all(at("deep").join(nested(MOST_LEVELS))).expect("folders");
    assert_eq!(used(&at("deep")), TOO_LARGE);

    // 20 names of 250 bytes are longer than a path may be.
    let name = "n".repeat(250);
    let mut below = at("long");
    fs::create_dir(&below).expect("a folder");
    let mut open = File::open(&below).expect("a folder");
    for _ in 0..20 {
        below = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd())).join(&name);
        fs::create_dir(&below).expect("a folder");
        open = File::open(&below).expect("a folder");
    }
    assert_eq!(used(&at("long")), TOO_LARGE);

    let limits = limits(json!({"containers": [{"name": "a", "resources": {"limits": {RESOURCE: "1Ei"}}}]}));
    let message = limits.judge(&usage(&[("v", TOO_LARGE), ("w", TOO_LARGE)], &[("a", 1)])).expect("too large");
    assert!(message.starts_with("Pod ephemeral local storage usage exceeds"), "{message}");
}

#[tokio::test]
async fn a_measurement_that_is_stopped_has_no_result() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), vec![1; 100_000]).expect("written");
    let volume = json!({"name": "v", "emptyDir": {"sizeLimit": "1Ki"}});
    let places = Places { volumes: vec![("v".into(), folder.path().into())], logs: folder.path().join("none") };
    let pod = Arc::new((limits(json!({"volumes": [volume]})), places));
    let stop = CancellationToken::new();
    let (exceeded, _) = measure(pod.clone(), stop.clone()).await;
    assert_eq!(exceeded.as_deref(), Some("Usage of EmptyDir volume \"v\" exceeds the limit \"1Ki\". "));
    stop.cancel();
    assert_eq!(measure(pod, stop.clone()).await.0, None);
    // Nothing of the folder is read any more.
    assert_eq!(super::used(folder.path(), MOST_FILES, &stop), 0);
}
