//! Finds and signals all processes of a server, and says how they are ended.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::table;

// A variable in the environment of every server process. Its children inherit it, so that they are
// found even after they leave the group.
pub(super) const MARKER: &str = "TOOLGATE_SERVER_OF";

/// How long a server may take to end after its stdin closes, and again after it is signalled.
pub(super) const END_GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShutdownPlan {
    pub(super) grace_after_close: Duration,
    /// The signal that asks it to end; `None` if it was already sent.
    pub(super) signal: Option<Signal>,
    pub(super) grace_after_signal: Duration,
}

impl ShutdownPlan {
    pub(super) const NORMAL: Self = Self {
        grace_after_close: END_GRACE,
        signal: Some(Signal::TERM),
        grace_after_signal: END_GRACE,
    };

    // For a package runner that may be downloading, and so doesn't read stdin. It receives the
    // signal of Ctrl-C once: npm then finishes its step and undoes the download. A second signal
    // would kill it and leave a half-written package.
    pub(super) const INSTALLING: Self = Self {
        grace_after_close: Duration::from_millis(300),
        signal: Some(Signal::INT),
        grace_after_signal: Duration::from_secs(5 * 60),
    };

    // For a package runner that was already asked to end.
    pub(super) const CLEANING_UP: Self = Self {
        grace_after_close: Duration::ZERO,
        signal: None,
        ..Self::INSTALLING
    };
}

/// All processes of one server, or of all servers: their groups, and every process with the marker.
///
/// The methods read the process table, which takes milliseconds: don't call them
/// on an async thread.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ProcessFamily {
    pub(super) groups: Vec<Pid>,
    pub(super) marker: Option<String>,
    // Markers of processes that don't belong to the family.
    pub(super) except: Vec<String>,
}

impl ProcessFamily {
    pub(super) fn is_alive(&self) -> bool {
        let is_alive =
            |group: &Pid| test_kill_process_group(*group).is_ok() && table::is_group_alive(*group);
        self.groups.iter().any(is_alive) || !self.marked().is_empty()
    }

    /// Signals every process exactly once, because a second signal would keep a package
    /// manager from cleaning up.
    pub(super) fn signal(&self, signal: Signal) {
        let others = self.marked();
        for group in &self.groups {
            // Fails if the processes have ended already.
            let _ended = kill_process_group(*group, signal);
        }
        for process in others {
            if !process.is_in(&self.groups) {
                process.signal(signal);
            }
        }
    }

    pub(super) fn marked(&self) -> Vec<table::ProcessHandle> {
        let entry = |marker: &String| format!("{MARKER}={marker}");
        let except: Vec<String> = self.except.iter().map(entry).collect();
        let wanted = self.marker.as_ref();
        wanted.map_or_else(Vec::new, |marker| {
            table::find_marked(&entry(marker), &except)
        })
    }
}
