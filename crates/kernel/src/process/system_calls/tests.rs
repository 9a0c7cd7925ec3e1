use super::*;

/// What the kernel does with a call under a filter, by the rules of linux/filter.h.
fn run(program: &[sock_filter], arch: u32, call: c_long, argument: u32) -> u32 {
    let (mut at, mut value) = (0, 0);
    loop {
        let step = program[at];
        let holds = match step.code {
            Program::LOAD => {
                value = match step.k {
                    NUMBER => number(call),
                    ARCH => arch,
                    FIRST_ARGUMENT => argument,
                    offset => panic!("a load from {offset}"),
                };
                at += 1;
                continue;
            }
            Program::RETURN => return step.k,
            Program::JUMP_EQUAL => value == step.k,
            Program::JUMP_AT_LEAST => value >= step.k,
            Program::JUMP_ANY_BIT => value & step.k != 0,
            code => panic!("an unknown step {code:#x}"),
        };
        at += 1 + usize::from(if holds { step.jt } else { step.jf });
    }
}

#[track_caller]
fn check(capabilities: u64, call: c_long, argument: u32, expected: u32) {
    assert_eq!(run(&filter(capabilities), ARCHITECTURE, call, argument), expected, "{call} {argument:#x}");
}

#[test]
fn calls_of_administrators_are_refused_without_the_capability() {
    let denied = refuse(libc::EPERM);
    for call in [libc::SYS_mount, libc::SYS_keyctl, libc::SYS_unshare, libc::SYS_bpf, libc::SYS_vhangup] {
        check(0, call, 0, denied);
    }
    for call in [libc::SYS_read, libc::SYS_execve, libc::SYS_setresuid, libc::SYS_capset, libc::SYS_prctl] {
        check(0, call, 0, ALLOW);
    }
    check(1 << SYS_ADMIN, libc::SYS_mount, 0, ALLOW);
    check(1 << SYS_ADMIN, libc::SYS_keyctl, 0, denied);
    check(1 << BPF, libc::SYS_bpf, 0, ALLOW);
    check(u64::MAX, libc::SYS_reboot, 0, ALLOW);
}

#[test]
fn namespaces_are_not_made_by_clone() {
    let (threads, user) = (0x3d_0f00, 0x1000_0011);
    check(0, libc::SYS_clone, threads, ALLOW);
    check(0, libc::SYS_clone, user, refuse(libc::EPERM));
    check(0, libc::SYS_clone3, 0, refuse(libc::ENOSYS));
    check(1 << SYS_ADMIN, libc::SYS_clone, user, ALLOW);
    check(1 << SYS_ADMIN, libc::SYS_clone3, 0, ALLOW);
}

#[test]
fn arguments_decide_about_sockets_and_personalities() {
    let denied = refuse(libc::EPERM);
    check(0, libc::SYS_socket, 2, ALLOW);
    check(0, libc::SYS_socket, AF_VSOCK, denied);
    check(0, libc::SYS_personality, 0xffff_ffff, ALLOW);
    check(0, libc::SYS_personality, 0x004_0000, denied);
}

#[test]
fn calls_of_other_architectures_are_unknown() {
    let i386 = 0x4000_0003;
    assert_eq!(run(&filter(u64::MAX), i386, libc::SYS_read, 0), refuse(libc::ENOSYS));
    #[cfg(target_arch = "x86_64")]
    check(u64::MAX, libc::SYS_read + 0x4000_0000, 0, refuse(libc::ENOSYS));
}
