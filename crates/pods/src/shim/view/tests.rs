use std::os::unix::fs::PermissionsExt;

use super::*;

/// A root with a volume in it, and a directory beside the volume that a link leads to.
struct Folders {
    root: tempfile::TempDir,
    volume: PathBuf,
    outside: PathBuf,
}

fn folders() -> Folders {
    let root = tempfile::tempdir().expect("a directory");
    let [volume, outside] = ["volume", "outside"].map(|name| root.path().join(name));
    fs::create_dir(&volume).expect("made");
    fs::create_dir(&outside).expect("made");
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o700)).expect("set");
    Folders { root, volume, outside }
}

#[test]
fn a_link_that_came_into_a_path_is_an_error() {
    let Folders { root, volume, outside } = folders();
    symlink("../outside", volume.join("relative")).expect("made");
    symlink(&outside, volume.join("absolute")).expect("made");
    symlink(outside.join("made"), volume.join("dangling")).expect("made");
    let opened = File::open(&root).expect("opened");
    let [known, a] = ["/volume", "a"].map(Path::new);
    for name in ["relative", "absolute", "dangling"] {
        for folder in [true, false] {
            let missing = [PathBuf::from(name), PathBuf::from("b")];
            assert!(make_place(&opened, known, &missing, folder).is_err(), "{name}");
            assert!(make_place(&opened, known, &missing[..1], folder).is_err(), "{name}");
            assert!(make_place(&opened, &known.join(name), &[a.to_owned()], folder).is_err(), "{name}");
        }
    }
    assert_eq!(fs::read_dir(&outside).expect("read").count(), 0);
    let missing = ["x", "y"].map(PathBuf::from);
    let made = make_place(&opened, known, &missing, true).expect("made");
    assert!(made.metadata().expect("a folder").is_dir() && volume.join("x/y").is_dir());
    let file = make_place(&opened, Path::new("/"), &missing[..1], false).expect("made");
    assert!(file.metadata().expect("a file").is_file());
}

#[test]
fn folders_of_a_path_in_a_volume_are_open_to_all_users_of_the_pod() {
    let Folders { root: _root, volume, outside } = folders();
    symlink(&outside, volume.join("link")).expect("made");
    let make = |path: &str| make_below(File::open(&volume).expect("opened"), Path::new(path));
    let made = make("a/b").expect("made");
    assert_eq!(made.metadata().expect("a folder").mode() & 0o777, 0o777);
    assert!(make("link").is_err() && make("link/c").is_err());
    assert_eq!((outside.metadata().expect("a folder").mode() & 0o777, outside.join("c").exists()), (0o700, false));
}
