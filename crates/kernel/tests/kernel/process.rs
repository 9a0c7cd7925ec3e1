//! Processes, and what they may do and see. What needs a process with one thread is tested where the shim is.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use fairlead_kernel::mount::open_below;
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
