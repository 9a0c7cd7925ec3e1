use super::super::sample::{Sample, file, folder, hard_link, link, sample, tar};
use super::*;

/// A directory in which something is unpacked, and one beside it that nothing may touch.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a directory");
        for name in ["root", "outside"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        fs::write(folder.path().join("outside/secret"), "secret").expect("written");
        Place { folder }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn unpack(&self, limits: Limits, layers: &[&[Sample]]) -> Result<u64, String> {
        let mut unpacking = Unpacking::new(self.root(), limits, false);
        for layer in layers {
            unpacking.layer(tar(layer).as_slice()).map_err(|error| error.to_string())?;
        }
        Ok(unpacking.written)
    }

    /// All paths that are there, with what links lead to and files hold.
    fn tree(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.root()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).expect("a directory").flatten() {
                let path = entry.path();
                let name = path.strip_prefix(self.root()).expect("below").display().to_string();
                let about = fs::symlink_metadata(&path).expect("there");
                if about.is_dir() {
                    open.push(path);
                    found.push(format!("{name}/"));
                } else if about.is_symlink() {
                    found.push(format!("{name} -> {}", fs::read_link(&path).expect("a link").display()));
                } else {
                    found.push(format!("{name}: {}", String::from_utf8_lossy(&fs::read(&path).expect("a file"))));
                }
            }
        }
        found.sort();
        found
    }

    fn untouched(&self) -> bool {
        let outside = fs::read_dir(self.folder.path().join("outside")).expect("there").count();
        fs::read(self.folder.path().join("outside/secret")).is_ok_and(|text| text == b"secret") && outside == 1
    }
}

#[test]
fn layers_are_unpacked_one_over_the_other() {
    let place = Place::new();
    let first = [
        folder("./"),
        folder("./etc/"),
        file("./etc/passwd", "old"),
        file("./etc/gone", "x"),
        folder("opaque"),
        file("opaque/lower", "x"),
        folder("opaque/deep"),
        file("opaque/deep/lower", "x"),
        file("becomes-folder", "x"),
        folder("becomes-file"),
        file("becomes-file/x", "x"),
        link("bin", "usr/bin"),
        folder("usr/bin"),
        link("abs", "/etc"),
        file("without/its/folder", "x"),
    ];
    let second = [
        file("etc/passwd", "new"),
        file("etc/.wh.gone", ""),
        // What the layer itself has stays, before and after the mark.
        file("opaque/deep/upper", "y"),
        file("opaque/.wh..wh..opq", ""),
        file("opaque/upper", "y"),
        folder("becomes-folder"),
        file("becomes-file", "y"),
        file("bin/tool", "y"),
        file("abs/hosts", "y"),
        hard_link("usr/bin/same", "bin/tool"),
        file("no/such/.wh.file", ""),
        file("etc/.wh..wh.plnk", ""),
    ];
    assert_eq!(place.unpack(Limits::default(), &[&first, &second]), Ok(17));
    let expected = [
        "abs -> /etc",
        "becomes-file: y",
        "becomes-folder/",
        "bin -> usr/bin",
        "etc/",
        "etc/hosts: y",
        "etc/passwd: new",
        "opaque/",
        "opaque/deep/",
        "opaque/deep/upper: y",
        "opaque/upper: y",
        "usr/",
        "usr/bin/",
        "usr/bin/same: y",
        "usr/bin/tool: y",
        "without/",
        "without/its/",
        "without/its/folder: x",
    ];
    let tree = place.tree();
    assert_eq!(tree, expected, "{tree:#?}");
}

#[test]
fn modes_and_long_names_are_kept() {
    let place = Place::new();
    let long = format!("{}/{}", "d".repeat(120), "f".repeat(200));
    let mut program = file("program", "x");
    program.mode = 0o4755;
    let target = format!("/{}", "t".repeat(150));
    place.unpack(Limits::default(), &[&[program, file(&long, "x"), link("l", &target)]]).expect("unpacked");
    let mode = fs::metadata(place.root().join("program")).expect("there").permissions().mode();
    assert_eq!(mode & 0o7777, 0o4755);
    assert!(place.root().join(&long).exists());
    assert_eq!(fs::read_link(place.root().join("l")).expect("a link"), Path::new(&target));
}

#[test]
fn what_leads_out_of_the_root_is_refused_by_its_name() {
    let check = |layers: &[&[Sample]], name: &str, why: &str| {
        let place = Place::new();
        let refused = place.unpack(Limits::default(), layers).expect_err(name);
        assert!(refused.contains(&format!("{name:?}")) && refused.contains(why), "{name}: {refused}");
        assert!(place.untouched(), "{name}");
    };
    let device = |kind: EntryType| sample("dev/sda", kind, "", b"", 0o666);
    check(&[&[file("/etc/passwd", "x")]], "/etc/passwd", "absolute");
    check(&[&[file("../outside/x", "x")]], "../outside/x", "out of the root");
    check(&[&[file("a/../../outside/x", "x")]], "a/../../outside/x", "out of the root");
    check(&[&[link("l", "../outside")]], "l", "out of the root");
    check(&[&[link("a/b/l", "../../../outside/secret")]], "a/b/l", "out of the root");
    check(&[&[link("l", "/../outside")]], "l", "out of the root");
    check(&[&[link("l", "")]], "l", "no path");
    check(&[&[hard_link("h", "../outside/secret")]], "h", "out of the root");
    check(&[&[hard_link("h", "/etc/passwd")]], "h", "absolute");
    check(&[&[hard_link("h", "missing")]], "h", "no file of the image");
    check(&[&[folder("d"), hard_link("h", "d")]], "h", "no file of the image");
    check(&[&[device(EntryType::Block)]], "dev/sda", "device");
    check(&[&[device(EntryType::Char)]], "dev/sda", "device");
    check(&[&[device(EntryType::Fifo)]], "dev/sda", "named pipe");
    check(&[&[device(EntryType::new(b'V'))]], "dev/sda", "not supported");
    check(&[&[file("f", "x"), file("f/g", "x")]], "f/g", "is a file");
    check(&[&[file(".wh...", "")]], ".wh...", "no name");
    check(&[&[file("a/.wh.", "")]], "a/.wh.", "no name");
    check(&[&[link("l", "l"), file("l/x", "x")]], "l/x", "too many links");
    check(&[&[folder("d"), folder("e")], &[file("d/.wh...", "")]], "d/.wh...", "no name");
    check(&[&[file(&"n".repeat(256), "x")]], &"n".repeat(256), "255 bytes");
    check(&[&[file(&"d/".repeat(200), "x")]], &"d/".repeat(200), "128 directories");
}

#[test]
fn links_within_the_root_are_followed_within_the_root() {
    let place = Place::new();
    let first = [link("etc", "/outside"), folder("outside")];
    let second = [file("etc/x", "inside"), file("etc/.wh.y", "")];
    place.unpack(Limits::default(), &[&first, &second]).expect("unpacked");
    assert!(place.untouched());
    assert_eq!(fs::read(place.root().join("outside/x")).expect("there"), b"inside");
    // A link that a lower layer has, and that is replaced, is not followed.
    let place = Place::new();
    let outside = place.folder.path().join("outside/secret").display().to_string();
    place.unpack(Limits::default(), &[&[link("f", &outside)], &[file("f", "mine")]]).expect("unpacked");
    assert!(place.untouched());
    assert_eq!(fs::read(place.root().join("f")).expect("there"), b"mine");
}

#[test]
fn bombs_end_at_the_limits() {
    let check = |limits: Limits, layers: &[&[Sample]], why: &str| {
        let refused = Place::new().unpack(limits, layers).expect_err(why);
        assert!(refused.contains(why) && refused.contains("entry"), "{refused}");
    };
    let usual = Limits::default();
    let large = file("large", &"x".repeat(200_000));
    check(Limits { bytes: 100_000, ..usual }, &[&[large]], "more than 100000 bytes");
    let half = [file("half", &"x".repeat(60_000))];
    // All layers together.
    check(Limits { bytes: 100_000, ..usual }, &[&half, &half], "more than 100000 bytes");
    let many: Vec<Sample> = (0..11).map(|number| file(&number.to_string(), "")).collect();
    check(Limits { entries: 10, ..usual }, &[&many], "more than 10 entries");
    check(Limits { entries: 10, ..usual }, &[&[file(&"d/".repeat(12), "")]], "more than 10 entries");
    check(
        Limits { names: 500, ..usual },
        &[&[file(&"n".repeat(200), ""), file(&"m".repeat(200), ""), file(&"o".repeat(200), "")]],
        "500 bytes",
    );
    check(Limits { depth: 3, ..usual }, &[&[file("a/b/c/d", "")]], "more than 3 directories");
    check(Limits { depth: 3, ..usual }, &[&[link("l", "a/b/c"), file("l/d/e", "")]], "more than 3 directories");
}

#[test]
fn a_name_without_end_is_not_read_into_memory() {
    let mut bytes = Vec::new();
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(EntryType::GNULongName);
    header.set_size(1 << 40);
    header.as_old_mut().name[..4].copy_from_slice(b"long");
    header.set_cksum();
    bytes.extend(header.as_bytes());
    let place = Place::new();
    let mut unpacking = Unpacking::new(place.root(), Limits::default(), false);
    let refused = unpacking.layer(bytes.as_slice().chain(io::repeat(b'x'))).expect_err("endless").to_string();
    assert!(refused.contains("its name or its attributes have more than"), "{refused}");
}

#[test]
fn an_archive_that_ends_early_is_refused() {
    let whole = tar(&[file("a", &"x".repeat(2000))]);
    for end in [600, 1500, 2400] {
        let place = Place::new();
        let mut unpacking = Unpacking::new(place.root(), Limits::default(), false);
        assert!(unpacking.layer(&whole[..end]).is_err(), "{end}");
    }
}
