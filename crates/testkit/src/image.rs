//! The files of an image, made of programs of this machine: nothing is downloaded for a test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::need;

/// Fills a directory with programs, the libraries they need, a list of users (`root`, and `web`
/// with number 1234 and groups 1235 and 4321) and a file `/marker` with the text `image`. Needs the
/// program `ldd`.
///
/// # Panics If a program is not there or cannot be copied.
pub fn fill(root: &Path, programs: &[&str]) {
    for folder in ["bin", "etc", "home/web", "tmp"] {
        fs::create_dir_all(root.join(folder)).expect("a directory of the image");
    }
    for name in programs {
        let program = need::program(name).unwrap_or_else(|| panic!("{name} is not there"));
        fs::copy(&program, root.join("bin").join(name))
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let said = Command::new("ldd").arg(&program).output().expect("ldd runs");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        for library in said.split_whitespace().filter(|word| word.starts_with('/')) {
            let copy = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(copy.parent().expect("a directory")).expect("made");
            if !copy.exists() {
                fs::copy(library, &copy).unwrap_or_else(|error| panic!("{library}: {error}"));
            }
        }
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777)).expect("a directory of the image");
    let texts = [
        ("marker", "image\n"),
        ("etc/passwd", "root:x:0:0::/:/bin/sh\nweb:x:1234:1235::/home/web:/bin/sh\n"),
        ("etc/group", "root:x:0:\nweb:x:1235:\nmore:x:4321:web\n"),
        ("tmp/of-image", "in its /tmp\n"),
    ];
    for (file, text) in texts {
        fs::write(root.join(file), text).expect("a file of the image");
    }
}
