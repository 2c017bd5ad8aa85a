//! Reads the process table of Linux from `/proc`.

use std::fs;
use std::io::Read;

use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

const ENVIRONMENT: u64 = 4 * 1024 * 1024;

/// A pidfd, which stays with its process even if the pid is reused.
pub(super) struct ProcessHandle {
    process: OwnedFd,
    group: Option<Pid>,
}

impl ProcessHandle {
    pub(super) fn signal(&self, signal: Signal) {
        // A process that is already gone needs no signal.
        let _gone = pidfd_send_signal(&self.process, signal);
    }

    pub(super) fn is_in(&self, groups: &[Pid]) -> bool {
        self.group.is_some_and(|group| groups.contains(&group))
    }
}

pub(super) fn group_lives(group: Pid) -> bool {
    all().any(|process| process.group == Some(group) && !process.zombie)
}

pub(super) fn memory(group: Pid) -> u64 {
    let members = all().filter(|process| process.group == Some(group));
    members.map(|process| resident(process.pid)).sum()
}

/// Processes with an environment entry that starts with `entry`, and none that starts with one of
/// `except`. Excludes this process.
pub(super) fn carrying(entry: &str, except: &[String]) -> Vec<ProcessHandle> {
    let own = getpid();
    let others = all().filter(|process| !process.zombie && process.pid != own);
    let carriers = others.filter_map(|process| {
        // Open the handle before reading the environment: then both belong to the same process, or
        // the handle is dead.
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

fn all() -> impl Iterator<Item = ProcessEntry> {
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

fn resident(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn environment(pid: Pid) -> Vec<u8> {
    let mut environment = Vec::new();
    if let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) {
        // Search what was read before an error.
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
            let process = ProcessEntry::parse(pid, stat);
            let told = process.map(|process| (process.group, process.zombie));
            assert_eq!(told, expected, "{stat}");
        }
    }

    #[test]
    fn this_process_holds_memory() {
        assert!(resident(getpid()) > 1024 * 1024);
    }
}
