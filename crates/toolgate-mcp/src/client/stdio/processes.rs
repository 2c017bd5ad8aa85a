//! Processes that belong together, and how they are reached.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::table;

/// The variable that every server and all that come from it carry: so they are found even after they left its group.
pub(super) const MARKER: &str = "TOOLGATE_SERVER_OF";

/// Everything that came from one server, or from all of them: their groups, and whoever carries the marker.
///
/// Its methods read the process table, which takes milliseconds: not for an async thread.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Family {
    pub(super) groups: Vec<Pid>,
    /// What the marker's value begins with; none: nobody is marked.
    pub(super) marker: Option<String>,
}

impl Family {
    /// True while a process of it lives.
    pub(super) fn lives(&self) -> bool {
        let group_lives =
            |group: &Pid| test_kill_process_group(*group).is_ok() && table::group_lives(*group);
        self.groups.iter().any(group_lives) || !self.marked().is_empty()
    }

    /// Sends a signal to all of it.
    pub(super) fn signal(&self, signal: Signal) {
        for group in &self.groups {
            // Gone already is as good as reached.
            let _gone = kill_process_group(*group, signal);
        }
        for process in self.marked() {
            process.signal(signal);
        }
    }

    pub(super) fn marked(&self) -> Vec<table::Handle> {
        let wanted = self.marker.as_ref();
        wanted.map_or_else(Vec::new, |marker| {
            table::carrying(&format!("{MARKER}={marker}"))
        })
    }
}
