//! Processes and process groups, as the system shows them.

use std::fs;
use std::io::Read;

use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal,
    test_kill_process_group,
};

/// The variable that every server and all that come from it carry: so they are found even after they left its group.
pub(super) const MARKER: &str = "TOOLGATE_SERVER_OF";

/// The most of an environment that is searched for the marker.
const ENVIRONMENT: u64 = 4 * 1024 * 1024;

/// One process.
#[derive(Debug, PartialEq)]
struct Process {
    pid: Pid,
    group: Option<Pid>,
    /// Dead, but not yet collected by its parent: nothing is left of it but its number.
    zombie: bool,
}

/// Everything that came from one server, or from all of them: their groups, and whoever carries the marker.
#[derive(Debug, Clone)]
pub(super) struct Family {
    pub(super) groups: Vec<Pid>,
    /// What the marker's value begins with; none: nobody is marked.
    pub(super) marker: Option<String>,
}

impl Family {
    /// True while a process of it lives. Reads the process table: not for an async thread.
    pub(super) fn lives(&self) -> bool {
        self.groups.iter().any(|group| group_lives(*group)) || !self.marked().is_empty()
    }

    /// Sends a signal to all of it.
    pub(super) fn signal(&self, signal: Signal) {
        for group in &self.groups {
            // Gone already is as good as reached.
            let _gone = kill_process_group(*group, signal);
        }
        for process in self.marked() {
            let _gone = pidfd_send_signal(process, signal);
        }
    }

    /// Handles to the processes that carry the marker. A handle stays with its process: a number could be given to another.
    fn marked(&self) -> Vec<rustix::fd::OwnedFd> {
        let Some(marker) = &self.marker else {
            return Vec::new();
        };
        let wanted = format!("{MARKER}={marker}");
        let own = rustix::process::getpid();
        let carries = |pid: Pid| {
            let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            environment_contains(pid, wanted.as_bytes()).then_some(handle)
        };
        table()
            .filter(|process| !process.zombie && process.pid != own)
            .filter_map(|process| carries(process.pid))
            .collect()
    }
}

/// True if a process of the group lives.
fn group_lives(group: Pid) -> bool {
    test_kill_process_group(group).is_ok()
        && table().any(|process| process.group == Some(group) && !process.zombie)
}

/// The memory that the processes of a group hold together, in bytes.
pub(super) fn memory(group: Pid) -> u64 {
    let members = table().filter(|process| process.group == Some(group));
    members.map(|process| resident(process.pid)).sum()
}

fn resident(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn environment_contains(pid: Pid, wanted: &[u8]) -> bool {
    let Ok(file) = fs::File::open(format!("/proc/{pid}/environ")) else {
        return false;
    };
    let mut environment = Vec::new();
    // What was read before an error is searched all the same.
    let _read = file.take(ENVIRONMENT).read_to_end(&mut environment);
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable.starts_with(wanted))
}

/// The process table.
fn table() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Process::parse(Pid::from_raw(pid)?, &String::from_utf8_lossy(&stat))
    })
}

impl Process {
    /// Reads `pid (name) state parent group …`: the name may contain anything, the rest cannot.
    fn parse(pid: Pid, stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            pid,
            zombie: matches!(*fields.first()?, "Z" | "X"),
            group: Pid::from_raw(fields.get(2)?.parse().ok()?),
        })
    }
}
