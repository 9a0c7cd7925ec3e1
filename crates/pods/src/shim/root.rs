//! The root of a container that has an image: the image's files, on which it writes without
//! changing them, and the few files of devices and of the kernel that container run times show.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use fairlead_kernel::process::Identity;
use fairlead_kernel::{Error, mount};

use super::launch::{Launch, Who};
use super::view::{OLD, STAGE, failed, leave_old_root};

/// Size of what a container may write outside of its volumes. It is in memory, and counts as the
/// container's.
const WRITTEN: &str = "size=256m,nr_inodes=64k,mode=0755";
/// Folders of devices and of the kernel, which no image brings.
pub(super) const FOLDERS: [&str; 3] = ["/dev", "/proc", "/sys"];
/// Devices every container has: the OCI runtime specification, config-linux.md, "Default Devices".
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links in /dev (the same document).
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Files of the kernel that root could change the machine by (containerd, oci/spec.go,
/// populateDefaultUnixSpec).
const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
/// Files of the kernel that tell of other processes or of hardware (the same list).
const HIDDEN: [&str; 11] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/firmware",
];

/// Makes the image's files the root of this mount namespace.
pub(super) fn enter(launch: &Launch, root: &File) -> Result<(), Error> {
    let stage = Path::new(STAGE);
    let about = root.metadata().map_err(failed("looking at the root of the image"))?;
    if !about.is_dir() {
        return Err(failed("looking at the root of the image")(io::ErrorKind::NotADirectory.into()));
    }
    mount::memory(stage, WRITTEN)?;
    let [lower, upper, work, whole] = ["lower", "upper", "work", "root"].map(|name| stage.join(name));
    for folder in [&lower, &upper, &work, &whole] {
        fs::create_dir(folder).map_err(failed("making the root of the container"))?;
    }
    // The root of an overlay has the owner and the mode of the upper directory.
    fs::set_permissions(&upper, fs::Permissions::from_mode(about.mode() & 0o7777))
        .and_then(|()| chown(&upper, Some(about.uid()), Some(about.gid())))
        .map_err(failed("making the root of the container"))?;
    mount::bind(&super::view::own(root), &lower)?;
    mount::copy_on_write(&lower, &upper, &work, &whole, launch.program.who.escalation)?;
    fs::create_dir(whole.join(OLD)).map_err(failed("making a folder for the old root"))?;
    mount::become_root(&whole, &whole.join(OLD))?;
    let [dev, proc, sys] = FOLDERS.map(Path::new);
    for folder in [dev, proc, sys] {
        make_folder(folder)?;
    }
    let old = Path::new("/").join(OLD);
    // Copies of folders that follow name their sources by /proc/self/fd.
    if launch.has_own_proc() {
        mount::processes(proc)?
    } else {
        mount::bind(&old.join("proc"), proc)?
    }
    if has_machine_devices(&launch.program.who) {
        mount::bind(&old.join("dev"), dev)?;
        mount::bind(&old.join("sys"), sys)?;
    } else {
        make_devices(launch, &old, dev)?;
        // Programs that look at it do without it, and some machines do not let it be mounted.
        let _ = mount::system(sys);
        protect()?;
    }
    leave_old_root()
}

/// True if a container with an image has the machine's /dev and /sys: a privileged container is not
/// kept from anything of the machine.
pub(super) fn has_machine_devices(who: &Who) -> bool {
    who.capabilities == Identity::ALL
}

/// Makes a directory in the root. An image may have a link or a file in its place, which goes.
fn make_folder(folder: &Path) -> Result<(), Error> {
    let action = format!("making {}", folder.display());
    match fs::symlink_metadata(folder) {
        Ok(about) if about.is_dir() => return Ok(()),
        Ok(_) => fs::remove_file(folder).map_err(failed(&action))?,
        Err(_) => {}
    }
    fs::create_dir(folder).map_err(failed(&action))
}

fn make_devices(launch: &Launch, old: &Path, dev: &Path) -> Result<(), Error> {
    mount::memory(dev, "size=64k,nr_inodes=1k,mode=0755")?;
    for name in DEVICES {
        let device = dev.join(name);
        File::create(&device).map_err(failed(&format!("making {}", device.display())))?;
        mount::bind(&old.join("dev").join(name), &device)?;
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name)).map_err(failed(&format!("making /dev/{name}")))?;
    }
    for name in ["pts", "shm"] {
        fs::create_dir(dev.join(name)).map_err(failed(&format!("making /dev/{name}")))?;
    }
    mount::terminals(&dev.join("pts"))?;
    if launch.own_ipc { Ok(()) } else { mount::bind(&old.join("dev/shm"), &dev.join("shm")) }
}

fn protect() -> Result<(), Error> {
    for path in READ_ONLY.map(Path::new).into_iter().filter(|path| path.exists()) {
        mount::bind(path, path)?;
        mount::make_read_only(path)?;
    }
    for path in HIDDEN.map(Path::new) {
        match path.metadata() {
            Ok(about) if about.is_dir() => {
                mount::memory(path, "size=4k,nr_inodes=2,mode=0555")?;
                mount::make_read_only(path)?;
            }
            Ok(_) => mount::bind(Path::new("/dev/null"), path)?,
            Err(_) => {}
        }
    }
    Ok(())
}
