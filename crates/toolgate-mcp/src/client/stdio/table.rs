//! Reads the process table of Linux from `/proc`.

use std::fs;
use std::io::Read;

use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

const MAX_ENVIRONMENT: u64 = 4 * 1024 * 1024;

/// A pidfd, which stays with its process even if the pid is reused.
pub(super) struct ProcessHandle {
    process: OwnedFd,
    group: Option<Pid>,
}

impl ProcessHandle {
    pub(super) fn signal(&self, signal: Signal) {
        // Fails if the process has ended already.
        let _ended = pidfd_send_signal(&self.process, signal);
    }

    pub(super) fn is_in(&self, groups: &[Pid]) -> bool {
        self.group.is_some_and(|group| groups.contains(&group))
    }
}

pub(super) fn is_group_alive(group: Pid) -> bool {
    processes().any(|process| process.group == Some(group) && !process.zombie)
}

/// Returns the resident memory of a group in bytes.
pub(super) fn memory(group: Pid) -> u64 {
    let members = processes().filter(|process| process.group == Some(group));
    members.map(|process| resident_bytes(process.pid)).sum()
}

/// Returns the processes that have an environment entry starting with `entry`, but none starting
/// with one of `except`. Excludes this process.
pub(super) fn find_marked(entry: &str, except: &[String]) -> Vec<ProcessHandle> {
    let own = getpid();
    let others = processes().filter(|process| !process.zombie && process.pid != own);
    let carriers = others.filter_map(|process| {
        // Open the handle before reading the environment. If the pid is reused in between, the
        // handle belongs to the dead process, and signals to it do nothing.
        let handle = ProcessHandle {
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
struct ProcessEntry {
    pid: Pid,
    group: Option<Pid>,
    // Dead, but not yet reaped by its parent.
    zombie: bool,
}

fn processes() -> impl Iterator<Item = ProcessEntry> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        ProcessEntry::parse(Pid::from_raw(pid)?, &String::from_utf8_lossy(&stat))
    })
}

impl ProcessEntry {
    /// Parses `pid (name) state parent group …`. The name may contain anything, even parentheses.
    fn parse(pid: Pid, stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        Some(Self {
            pid,
            zombie: matches!(fields.next()?, "Z" | "X"),
            // A process that was just reaped reports group -1.
            group: Pid::from_raw(fields.nth(1)?.parse::<i32>().ok()?.max(0)),
        })
    }
}

fn resident_bytes(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn environment(pid: Pid) -> Vec<u8> {
    let mut environment = Vec::new();
    if let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) {
        // After an error, search the part that was read.
        let _read = file.take(MAX_ENVIRONMENT).read_to_end(&mut environment);
    }
    environment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_process_name_is_parsed() {
        let pid = Pid::from_raw(7).unwrap();
        for (stat, expected) in [
            ("7 (sh) S 1 7 7 0 -1", Some((Pid::from_raw(7), false))),
            ("7 (a) Z 9 9 (x) Z 1 5 7 0", Some((Pid::from_raw(5), true))),
            ("7 (kthreadd) S 0 0 0 0", Some((None, false))),
            ("7 (sh) X 0 -1 -1 0 -1", Some((None, true))),
            ("7 (sh) S", None),
            ("", None),
        ] {
            let process = ProcessEntry::parse(pid, stat);
            let parsed = process.map(|process| (process.group, process.zombie));
            assert_eq!(parsed, expected, "{stat}");
        }
    }

    #[test]
    fn this_process_holds_memory() {
        assert!(resident_bytes(getpid()) > 1024 * 1024);
    }
}
