//! Which system calls may a process make? The filter of seccomp profile `RuntimeDefault`: what
//! container runtimes refuse by default, because only administrators need it or because it has been
//! a way out of containers.
//!
//! | system call | refused with |
//! |---|---|
//! | listed in [`REFUSED`], without one of the capabilities that allow it | `EPERM` |
//! | `clone` that makes a namespace, without CAP_SYS_ADMIN | `EPERM` |
//! | `clone3`, whose flags a filter cannot see, without CAP_SYS_ADMIN | `ENOSYS`, as if too new |
//! | sockets of family AF_VSOCK; personalities other than Linux' own | `EPERM` |
//! | a call of another architecture, as 32-bit programs make | `ENOSYS` |

use std::io;

use libc::{c_long, sock_filter};

use super::failed;
use crate::error::Error;
use crate::sys::process as calls;

/// Number of a capability, as in linux/capability.h.
type Capability = u8;
const DAC_READ_SEARCH: Capability = 2;
const SYS_MODULE: Capability = 16;
const SYS_RAWIO: Capability = 17;
const SYS_CHROOT: Capability = 18;
const SYS_PTRACE: Capability = 19;
const SYS_PACCT: Capability = 20;
const SYS_ADMIN: Capability = 21;
const SYS_BOOT: Capability = 22;
const SYS_NICE: Capability = 23;
const SYS_TIME: Capability = 25;
const SYS_TTY_CONFIG: Capability = 26;
const SYSLOG: Capability = 34;
const PERFMON: Capability = 38;
const BPF: Capability = 39;

/// System calls that are refused, each with the capabilities of which one allows it.
const REFUSED: &[(c_long, &[Capability])] = &[
    (libc::SYS_acct, &[SYS_PACCT]),
    (libc::SYS_add_key, &[]),
    (libc::SYS_bpf, &[SYS_ADMIN, BPF]),
    (libc::SYS_chroot, &[SYS_CHROOT]),
    (libc::SYS_clock_settime, &[SYS_TIME]),
    (libc::SYS_delete_module, &[SYS_MODULE]),
    (libc::SYS_fanotify_init, &[SYS_ADMIN]),
    (libc::SYS_finit_module, &[SYS_MODULE]),
    (libc::SYS_fsconfig, &[SYS_ADMIN]),
    (libc::SYS_fsmount, &[SYS_ADMIN]),
    (libc::SYS_fsopen, &[SYS_ADMIN]),
    (libc::SYS_fspick, &[SYS_ADMIN]),
    (libc::SYS_get_mempolicy, &[SYS_NICE]),
    (libc::SYS_init_module, &[SYS_MODULE]),
    (libc::SYS_io_uring_enter, &[]),
    (libc::SYS_io_uring_register, &[]),
    (libc::SYS_io_uring_setup, &[]),
    (libc::SYS_kcmp, &[SYS_PTRACE]),
    (libc::SYS_kexec_file_load, &[]),
    (libc::SYS_kexec_load, &[]),
    (libc::SYS_keyctl, &[]),
    (libc::SYS_lookup_dcookie, &[SYS_ADMIN]),
    (libc::SYS_mbind, &[SYS_NICE]),
    (libc::SYS_migrate_pages, &[]),
    (libc::SYS_mount, &[SYS_ADMIN]),
    (libc::SYS_mount_setattr, &[SYS_ADMIN]),
    (libc::SYS_move_mount, &[SYS_ADMIN]),
    (libc::SYS_move_pages, &[]),
    (libc::SYS_nfsservctl, &[]),
    (libc::SYS_open_by_handle_at, &[DAC_READ_SEARCH]),
    (libc::SYS_open_tree, &[SYS_ADMIN]),
    (libc::SYS_perf_event_open, &[SYS_ADMIN, PERFMON]),
    (libc::SYS_pidfd_getfd, &[SYS_PTRACE]),
    (libc::SYS_pivot_root, &[]),
    (libc::SYS_process_madvise, &[SYS_PTRACE]),
    (libc::SYS_quotactl, &[SYS_ADMIN]),
    (libc::SYS_quotactl_fd, &[SYS_ADMIN]),
    (libc::SYS_reboot, &[SYS_BOOT]),
    (libc::SYS_request_key, &[]),
    (libc::SYS_set_mempolicy, &[SYS_NICE]),
    (libc::SYS_set_mempolicy_home_node, &[SYS_NICE]),
    (libc::SYS_setdomainname, &[SYS_ADMIN]),
    (libc::SYS_sethostname, &[SYS_ADMIN]),
    (libc::SYS_setns, &[SYS_ADMIN]),
    (libc::SYS_settimeofday, &[SYS_TIME]),
    (libc::SYS_swapoff, &[]),
    (libc::SYS_swapon, &[]),
    (libc::SYS_syslog, &[SYS_ADMIN, SYSLOG]),
    (libc::SYS_umount2, &[SYS_ADMIN]),
    (libc::SYS_unshare, &[SYS_ADMIN]),
    (libc::SYS_userfaultfd, &[]),
    (libc::SYS_vhangup, &[SYS_TTY_CONFIG]),
    // Of x86-64 alone.
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_ioperm, &[SYS_RAWIO]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_iopl, &[SYS_RAWIO]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS__sysctl, &[]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_sysfs, &[]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_uselib, &[]),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_ustat, &[]),
];

/// Flags of `clone` that make a namespace: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID
/// and NEWNET.
const NAMESPACES: u32 = 0x7e02_0000;
/// Personalities that are allowed: PER_LINUX, PER_LINUX32, UNAME26 with each, and the question
/// which one is set.
const PERSONALITIES: [u32; 5] = [0, 0x8, 0x2_0000, 0x2_0008, u32::MAX];
/// Sockets between virtual machines and their host, which have no network namespaces.
const AF_VSOCK: u32 = 40;

/// The architecture that the kernel reports for calls of this program (linux/audit.h).
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;
/// Numbers from here on are calls of x32, another architecture under the name of x86-64.
#[cfg(target_arch = "x86_64")]
const FOREIGN_NUMBERS: u32 = 0x4000_0000;
#[cfg(not(target_arch = "x86_64"))]
const FOREIGN_NUMBERS: u32 = u32::MAX;

/// Offsets into `struct seccomp_data` (linux/seccomp.h): number of the call, architecture, and the
/// lower half of its first argument on a little-endian machine.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

/// SECCOMP_RET_ALLOW.
const ALLOW: u32 = 0x7fff_0000;

/// From now on this process and its children are refused the system calls that seccomp profile
/// `RuntimeDefault` refuses to a container with these capabilities, as bits. Needs CAP_SYS_ADMIN,
/// so it is called before the process gives up its privileges.
pub fn refuse_system_calls(capabilities: u64) -> Result<(), Error> {
    let refuse = || -> io::Result<()> {
        if ARCHITECTURE == 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "no filter for this architecture"));
        }
        calls::set_seccomp_filter(&filter(capabilities))
    };
    refuse().map_err(failed("setting a filter for system calls"))
}

/// Returns SECCOMP_RET_ERRNO with an error.
fn refuse(error: i32) -> u32 {
    0x0005_0000 | error.unsigned_abs()
}

/// Returns the filter for a container with these capabilities.
fn filter(capabilities: u64) -> Vec<sock_filter> {
    let has = |allowed: &[Capability]| allowed.iter().any(|number| capabilities & (1 << number) != 0);
    let denied = refuse(libc::EPERM);
    let unknown = refuse(libc::ENOSYS);
    let mut program = Program::default();
    program.load(ARCH);
    program.unless_equal(ARCHITECTURE, unknown);
    program.load(NUMBER);
    program.if_at_least(FOREIGN_NUMBERS, unknown);
    for (call, allowed) in REFUSED {
        if !has(allowed) {
            program.if_equal(number(*call), denied);
        }
    }
    if !has(&[SYS_ADMIN]) {
        program.if_equal(number(libc::SYS_clone3), unknown);
        program.if_call(number(libc::SYS_clone), |call| call.if_any_bit(NAMESPACES, denied));
    }
    program.if_call(number(libc::SYS_socket), |call| call.if_equal(AF_VSOCK, denied));
    program.if_call(number(libc::SYS_personality), |call| {
        PERSONALITIES.iter().for_each(|allowed| call.if_equal(*allowed, ALLOW));
        call.always(denied);
    });
    program.always(ALLOW);
    program.0
}

/// Numbers of system calls are small.
fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// A program of classic BPF (linux/filter.h). Its conditions return, or go on with the next one.
#[derive(Default)]
struct Program(Vec<sock_filter>);

impl Program {
    const LOAD: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_AT_LEAST: u16 = 0x35;
    const JUMP_ANY_BIT: u16 = 0x45;
    const RETURN: u16 = 0x06;

    fn add(&mut self, code: u16, jumps: (u8, u8), k: u32) {
        self.0.push(sock_filter { code, jt: jumps.0, jf: jumps.1, k });
    }

    fn load(&mut self, offset: u32) {
        self.add(Program::LOAD, (0, 0), offset);
    }

    fn always(&mut self, action: u32) {
        self.add(Program::RETURN, (0, 0), action);
    }

    fn if_equal(&mut self, value: u32, action: u32) {
        self.add(Program::JUMP_EQUAL, (0, 1), value);
        self.always(action);
    }

    fn unless_equal(&mut self, value: u32, action: u32) {
        self.add(Program::JUMP_EQUAL, (1, 0), value);
        self.always(action);
    }

    fn if_at_least(&mut self, value: u32, action: u32) {
        self.add(Program::JUMP_AT_LEAST, (0, 1), value);
        self.always(action);
    }

    fn if_any_bit(&mut self, bits: u32, action: u32) {
        self.add(Program::JUMP_ANY_BIT, (0, 1), bits);
        self.always(action);
    }

    /// Adds conditions on the first argument of a call. A call that passes them is allowed.
    fn if_call(&mut self, call: u32, conditions: impl FnOnce(&mut Program)) {
        let mut inner = Program::default();
        inner.load(FIRST_ARGUMENT);
        conditions(&mut inner);
        inner.always(ALLOW);
        let length = u8::try_from(inner.0.len()).expect("a few conditions");
        self.add(Program::JUMP_EQUAL, (0, length), call);
        self.0.append(&mut inner.0);
    }
}

#[cfg(test)]
mod tests;
