use serde_json::json;

use super::super::sample::{Files, archive, docker, file, folder, gzip, link, oci, tar, write as write_files};
use super::*;

/// A store without images, and a directory for archives.
struct Place {
    folder: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a directory");
        let store = Store::new(&folder.path().join("pods"));
        Place { folder, store }
    }

    fn load_bytes(&self, bytes: &[u8], load: &Load) -> Result<Vec<Loaded>, String> {
        let file = self.folder.path().join("image.tar");
        fs::write(&file, bytes).expect("written");
        self.store.load(&file, load).map_err(|error| error.to_string())
    }

    fn load(&self, files: &Files) -> Result<Vec<Loaded>, String> {
        self.load_bytes(&archive(files), &Load::default())
    }

    fn find(&self, name: &str) -> Option<Image> {
        self.store.find(&name.parse().expect("a name"))
    }

    /// What is in the directory of images, but for the lock.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path().join("pods/images")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name != LOCK).collect()
    }
}

fn layers() -> Vec<Vec<u8>> {
    vec![
        tar(&[folder("etc"), file("etc/passwd", "web:x:101:102::/srv:/bin/sh\n"), file("gone", "x")]),
        tar(&[file(".wh.gone", ""), file("app", "program"), link("bin", "usr/bin")]),
    ]
}

fn run() -> serde_json::Value {
    json!({"Entrypoint": ["/app"], "Cmd": ["serve"], "Env": ["A=b=c", "EMPTY="], "User": "web", "WorkingDir": "/srv"})
}

fn is_whole(image: &Image) {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!((&image.entrypoint, &image.command), (&words(&["/app"]), &words(&["serve"])));
    let pairs = [("A", "b=c"), ("EMPTY", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(image.env, pairs);
    assert_eq!((image.user.as_deref(), image.working_dir.as_deref()), (Some("web"), Some("/srv")));
    assert!(!image.chosen_user);
    let root = image.root.as_ref().expect("files");
    assert_eq!(fs::read(root.join("app")).expect("there"), b"program");
    assert!(!root.join("gone").exists() && root.join("etc/passwd").exists());
    assert_eq!(image.accounts().expect("lists").user("web").map(|user| user.user), Ok(101));
}

#[test]
fn every_kind_of_archive_is_loaded() {
    let place = Place::new();
    place.load(&oci(Some("example.com/web:1"), &layers(), &run())).expect("an OCI archive");
    is_whole(&place.find("example.com/web:1").expect("loaded"));
    assert_eq!(place.find("example.com/web"), None);

    let place = Place::new();
    place.load(&docker(&["web:1", "web:2"], &layers(), &run())).expect("of docker save");
    is_whole(&place.find("web:2").expect("loaded"));
    is_whole(&place.find("docker.io/library/web:1").expect("loaded"));

    let place = Place::new();
    let layout = place.folder.path().join("layout");
    write_files(&layout, &oci(None, &layers(), &run()));
    let nameless = place.store.load(&layout, &Load::default()).map_err(|error| error.to_string());
    assert!(nameless.is_err_and(|why| why.contains("--name")));
    let load = Load { name: Some("mine".to_owned()), user: Some("root".to_owned()), ..Load::default() };
    let loaded = place.store.load(&layout, &load).expect("a layout");
    assert_eq!(loaded[0].names, ["docker.io/library/mine:latest"]);
    let image = place.find("mine").expect("loaded");
    assert_eq!((image.user.as_deref(), image.chosen_user), (Some("root"), true));
    // By its digests, whatever the name before them.
    let manifest = loaded[0].digest.clone().expect("a manifest");
    for digest in [&loaded[0].id, &manifest] {
        assert!(place.find(&format!("example.com/any@{digest}")).is_some(), "{digest}");
    }

    let place = Place::new();
    let whole = gzip(&archive(&docker(&["web:1"], &layers(), &run())));
    place.load_bytes(&whole, &Load::default()).expect("a compressed archive");
    is_whole(&place.find("web:1").expect("loaded"));
    assert_eq!(place.left().len(), 1, "{:?}", place.left());
}

#[test]
fn a_layer_that_occurs_twice_is_a_link_in_the_archive() {
    let place = Place::new();
    let layer = tar(&[file("a", "x")]);
    let mut files = docker(&["twice"], &[layer.clone(), layer], &run());
    files.remove("layer1/layer.tar");
    let mut bytes = archive(&files);
    bytes.truncate(bytes.len() - 1024);
    bytes.extend(tar(&[link("layer1/layer.tar", "../layer0/layer.tar")]));
    place.load_bytes(&bytes, &Load::default()).expect("loaded");
    assert!(place.find("twice").is_some());
}

#[test]
fn what_is_not_what_its_digest_says_is_refused_and_leaves_nothing() {
    let check = |files: &Files, why: &str| {
        let place = Place::new();
        let refused = place.load(files).expect_err(why);
        assert!(refused.contains(why), "{refused}");
        assert!(place.left().is_empty(), "{:?}", place.left());
    };
    let good = oci(Some("web:1"), &layers(), &run());
    for name in good.keys().filter(|name| name.starts_with("blobs/")) {
        let mut files = good.clone();
        files.get_mut(name).expect("a blob").push(b' ');
        check(&files, "is not what its digest says");
        files.remove(name);
        check(&files, "missing");
    }
    let mut files = docker(&["web:1"], &layers(), &run());
    files.insert("layer1/layer.tar".to_owned(), tar(&[file("app", "other")]));
    check(&files, "diff_ids");
    let mut files = docker(&["web:1"], &layers(), &run());
    let config = files.keys().find(|name| name.ends_with(".json") && *name != "manifest.json").expect("it").clone();
    files.get_mut(&config).expect("it").push(b' ');
    check(&files, "is not what its name says");
    check(&Files::new(), "this is no image");
    let malicious = vec![tar(&[file("fine", "x"), link("evil", "../../../etc/shadow")])];
    check(&oci(Some("web:1"), &malicious, &run()), "entry \"evil\"");
    let mut zstd = docker(&["web:1"], &layers(), &run());
    zstd.insert("layer1/layer.tar".to_owned(), ZSTD.to_vec());
    check(&zstd, "zstd");
}

#[test]
fn a_bomb_is_refused_and_leaves_nothing() {
    let place = Place::new();
    let bomb = vec![tar(&[file("bomb", &"0".repeat(1 << 20))])];
    let load = Load { limits: Limits { bytes: 100_000, ..Limits::default() }, ..Load::default() };
    let bytes = archive(&oci(Some("web:1"), &bomb, &run()));
    assert!(bytes.len() < 50_000);
    let refused = place.load_bytes(&bytes, &load).expect_err("a bomb");
    assert!(refused.contains("entry \"bomb\"") && refused.contains("100000 bytes"), "{refused}");
    assert!(place.left().is_empty());
    let refused = place.load_bytes(&gzip(&archive(&docker(&["web:1"], &bomb, &run()))), &load).expect_err("a bomb");
    assert!(refused.contains("100000 bytes"), "{refused}");
    assert!(place.left().is_empty());
}

#[test]
fn another_processors_image_is_refused() {
    let mut files = oci(Some("web:1"), &layers(), &run());
    let index = json!({"manifests": [{"digest": format!("sha256:{:064}", 0), "size": 1,
        "platform": {"os": "linux", "architecture": "s390x"}}]});
    files.insert("index.json".to_owned(), index.to_string().into_bytes());
    let refused = Place::new().load(&files).expect_err("of another");
    assert!(refused.contains("linux/s390x"), "{refused}");
}

#[test]
fn a_name_belongs_to_the_image_that_was_loaded_last() {
    let place = Place::new();
    let one = place.load(&docker(&["web:1", "web:old"], &layers(), &run())).expect("loaded").remove(0);
    let two = place.load(&docker(&["web:1"], &layers()[..1], &run())).expect("loaded").remove(0);
    assert_ne!(one.id, two.id);
    let id = |name: &str| place.find(name).map(|image| image.id);
    assert_eq!((id("web:1"), id("web:old")), (Some(two.id.clone()), Some(one.id.clone())));
    // The same image again, by another name.
    place.load(&docker(&["again"], &layers(), &run())).expect("loaded");
    assert_eq!((id("again"), place.store.list().len()), (Some(one.id.clone()), 2));
    // One of several names goes alone, the last one with the files.
    assert_eq!(
        place.store.remove("again").map_err(|error| error.to_string()),
        Ok("docker.io/library/again:latest".to_owned())
    );
    assert_eq!((id("again"), id("web:old")), (None, Some(one.id.clone())));
    assert!(place.store.remove(&one.id[7..19]).is_ok());
    assert!(place.store.remove("web:old").is_err_and(|why| why.to_string().contains("web:old")));
    place.store.remove("web:1").expect("removed");
    assert!(place.left().is_empty(), "{:?}", place.left());
}
