//! Processes, and what they may do and see. What needs a process with one thread is tested where the shim is.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use fairlead_kernel::mount::{open_below, read_within};
use fairlead_kernel::process::{Handle, capability, fork, resize_terminal, terminal};
use std::os::fd::AsFd;

#[test]
fn a_process_with_several_threads_is_not_split() {
    // The tests of this program run in threads.
    let refused = std::thread::spawn(fork).join().unwrap();
    assert!(refused.unwrap_err().to_string().contains("several threads"));
}

#[test]
fn capabilities_have_names() {
    for (name, number) in
        [("CHOWN", Some(0)), ("cap_net_admin", Some(12)), ("CAP_CHECKPOINT_RESTORE", Some(40)), ("X", None)]
    {
        assert_eq!(capability(name), number, "{name}");
    }
}

#[test]
fn nothing_in_a_folder_leads_out_of_it() {
    let folder = std::env::temp_dir().join(format!("fairlead-below-{}", std::process::id()));
    fs::create_dir_all(folder.join("in")).unwrap();
    symlink("/etc", folder.join("out")).unwrap();
    symlink("in", folder.join("link")).unwrap();
    let open = |path: &str| open_below(&File::open(&folder).unwrap(), path.as_ref());
    for (path, fine) in
        [("in", true), ("link", true), ("out", false), ("out/passwd", false), ("../..", false), ("/etc", false)]
    {
        assert_eq!(open(path).is_ok(), fine, "{path}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn only_plain_and_short_files_within_a_root_are_read() {
    let root = std::env::temp_dir().join(format!("fairlead-within-{}", std::process::id()));
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("etc/plain"), "0123456789").unwrap();
    fs::write(root.join("etc/long"), "0123456789a").unwrap();
    fs::write(root.join("etc/empty"), "").unwrap();
    for (link, to) in [("link", "plain"), ("absolute", "/etc/plain"), ("up", "../../../../etc/plain")] {
        symlink(to, root.join("etc").join(link)).unwrap();
    }
    for (link, to) in [("zero", "/dev/zero"), ("passwd", "/etc/passwd"), ("waits", "pipe"), ("circle", "circle")] {
        symlink(to, root.join("etc").join(link)).unwrap();
    }
    let made = std::process::Command::new("mkfifo").arg(root.join("etc/pipe")).status().unwrap();
    assert!(made.success());
    let read = |path: &str| read_within(&File::open(&root).unwrap(), path.as_ref(), 10).ok();
    for path in ["etc/plain", "/etc/plain", "etc/link", "etc/absolute", "etc/up"] {
        assert_eq!(read(path).as_deref(), Some(&b"0123456789"[..]), "{path}");
    }
    assert_eq!(read("etc/empty").as_deref(), Some(&b""[..]));
    for path in ["etc", "etc/long", "etc/pipe", "etc/waits", "etc/zero", "etc/passwd", "etc/circle", "etc/none"] {
        assert_eq!(read(path), None, "{path}");
    }
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn a_process_is_known_by_its_handle() {
    let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
    let handle = Handle::open(i32::try_from(child.id()).unwrap()).unwrap();
    handle.signal(9).unwrap();
    child.wait().unwrap();
    assert!(handle.signal(9).is_err(), "it has ended");
}

#[test]
fn a_terminal_has_a_size() {
    let (shows, writes) = terminal().unwrap();
    resize_terminal(shows.as_fd(), 91, 37).unwrap();
    let output = std::process::Command::new("stty").arg("size").stdin(writes).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "37 91");
}
