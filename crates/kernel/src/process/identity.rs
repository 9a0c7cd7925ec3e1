//! Who is a process, and what may it do? A process that gave something up never gets it back.

use super::failed;
use crate::error::Error;
use crate::sys::process as calls;

/// The capabilities by number, as the kernel counts them.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// The number of a capability, with or without `CAP_` before its name.
pub fn capability(name: &str) -> Option<u8> {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("CAP_").unwrap_or(&upper);
    NAMES.iter().position(|known| *known == short).and_then(|number| u8::try_from(number).ok())
}

/// Who a process is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user: u32,
    /// The main group.
    pub group: u32,
    /// The other groups.
    pub groups: Vec<u32>,
    /// The capabilities to keep, as bits; [`Identity::ALL`] for all the parent has.
    pub capabilities: u64,
    /// Whether programs may give it more than it has, as those with a setuid bit do.
    pub escalation: bool,
}

impl Identity {
    /// All capabilities.
    pub const ALL: u64 = u64::MAX;

    /// Becomes it.
    pub fn take(&self) -> Result<(), Error> {
        let whole = self.capabilities == Identity::ALL;
        if !whole {
            self.bound().map_err(failed("giving up capabilities"))?;
        }
        calls::set_groups(&self.groups).map_err(failed("setting the groups"))?;
        let keep = self.user != 0 && self.capabilities != 0 && !whole;
        if keep {
            calls::control(libc::PR_SET_KEEPCAPS, 1, 0).map_err(failed("keeping capabilities"))?;
        }
        calls::set_user(self.user, self.group).map_err(failed(&format!("becoming user {}", self.user)))?;
        if keep {
            self.keep().map_err(failed("keeping capabilities"))?;
        }
        if !self.escalation {
            calls::control(libc::PR_SET_NO_NEW_PRIVS, 1, 0).map_err(failed("giving up privileges to come"))?;
        }
        Ok(())
    }

    /// No program it starts ever has more than these.
    fn bound(&self) -> std::io::Result<()> {
        for number in 0..64u64 {
            if self.capabilities & (1 << number) != 0 {
                continue;
            }
            match calls::control(libc::PR_CAPBSET_DROP, number, 0) {
                // The kernel knows no more.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Ok(()),
                done => done.map(drop)?,
            }
        }
        Ok(())
    }

    /// A user who is not root has them only if told so.
    fn keep(&self) -> std::io::Result<()> {
        const RAISE: u64 = 2;
        calls::set_capabilities(self.capabilities)?;
        let mut wanted = (0..64u64).filter(|number| self.capabilities & (1 << number) != 0);
        wanted.try_for_each(|number| calls::control(libc::PR_CAP_AMBIENT, RAISE, number).map(drop))
    }
}
