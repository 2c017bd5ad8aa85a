//! The process table of Linux.

use std::fs;
use std::io::Read;

use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

/// The most of an environment that is searched.
const ENVIRONMENT: u64 = 4 * 1024 * 1024;

/// A hold on a process that stays with it: its number could be given to another.
pub(super) struct Handle {
    process: OwnedFd,
    group: Option<Pid>,
}

impl Handle {
    pub(super) fn signal(&self, signal: Signal) {
        // Gone already is as good as reached.
        let _gone = pidfd_send_signal(&self.process, signal);
    }

    /// True if a signal to one of these groups reaches it.
    pub(super) fn is_in(&self, groups: &[Pid]) -> bool {
        self.group.is_some_and(|group| groups.contains(&group))
    }
}

/// True if a process of the group lives: one that only waits to be collected does not.
pub(super) fn group_lives(group: Pid) -> bool {
    all().any(|process| process.group == Some(group) && !process.zombie)
}

/// The memory that the processes of a group hold together, in bytes.
pub(super) fn memory(group: Pid) -> u64 {
    let members = all().filter(|process| process.group == Some(group));
    members.map(|process| resident(process.pid)).sum()
}

/// The processes in whose environment an entry begins like this, and none like one of `except`. This process is not among them.
pub(super) fn carrying(entry: &str, except: &[String]) -> Vec<Handle> {
    let own = getpid();
    let others = all().filter(|process| !process.zombie && process.pid != own);
    let carriers = others.filter_map(|process| {
        // First the handle, then the look: so both are about the same process, or the handle is of one that is gone.
        let handle = Handle {
            process: pidfd_open(process.pid, PidfdFlags::empty()).ok()?,
            group: process.group,
        };
        let environment = environment(process.pid);
        let has = |wanted: &str| {
            let mut entries = environment.split(|byte| *byte == 0);
            entries.any(|entry| entry.starts_with(wanted.as_bytes()))
        };
        (has(entry) && !except.iter().any(|other| has(other))).then_some(handle)
    });
    carriers.collect()
}

#[derive(Debug, PartialEq)]
struct Process {
    pid: Pid,
    group: Option<Pid>,
    /// Dead, but not yet collected by its parent: nothing is left of it but its number.
    zombie: bool,
}

fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Process::parse(Pid::from_raw(pid)?, &String::from_utf8_lossy(&stat))
    })
}

impl Process {
    /// Reads `pid (name) state parent group …`: the name may contain anything, also parentheses.
    fn parse(pid: Pid, stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        Some(Self {
            pid,
            zombie: matches!(fields.next()?, "Z" | "X"),
            // A process that has just been collected is in group -1.
            group: Pid::from_raw(fields.nth(1)?.parse::<i32>().ok()?.max(0)),
        })
    }
}

fn resident(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn environment(pid: Pid) -> Vec<u8> {
    let mut environment = Vec::new();
    if let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) {
        // What was read before an error is searched all the same.
        let _read = file.take(ENVIRONMENT).read_to_end(&mut environment);
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let pid = Pid::from_raw(7).unwrap();
        for (stat, expected) in [
            ("7 (sh) S 1 7 7 0 -1", Some((Pid::from_raw(7), false))),
            ("7 (a) Z 9 9 (x) Z 1 5 7 0", Some((Pid::from_raw(5), true))),
            ("7 (kthreadd) S 0 0 0 0", Some((None, false))),
            ("7 (sh) X 0 -1 -1 0 -1", Some((None, true))),
            ("7 (sh) S", None),
            ("", None),
        ] {
            let process = Process::parse(pid, stat);
            let told = process.map(|process| (process.group, process.zombie));
            assert_eq!(told, expected, "{stat}");
        }
    }

    #[test]
    fn this_process_holds_memory() {
        assert!(resident(getpid()) > 1024 * 1024);
    }
}
