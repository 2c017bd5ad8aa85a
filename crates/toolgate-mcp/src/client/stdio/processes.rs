//! Processes that belong together, and how they are reached.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::table;

/// The variable that every server and all that come from it carry: so they are found even after they left its group.
pub(super) const MARKER: &str = "TOOLGATE_SERVER_OF";

/// How long a server may take to end by itself once its input is closed, and once more when it is asked to.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// How a server is ended. Its input is closed first, and it is killed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    /// How long the end of its input is left to work.
    pub(super) closed: Duration,
    /// How it is asked to end; none: it was asked before.
    pub(super) signal: Option<Signal>,
    /// How long it may take after that.
    pub(super) asked: Duration,
}

impl Ending {
    /// Of a server that is there.
    pub(super) const USUAL: Self = Self {
        closed: PATIENCE,
        signal: Some(Signal::TERM),
        asked: PATIENCE,
    };

    /// Of a package runner that may be in the middle of a download, and so does not read its input. It is asked as by Ctrl-C and
    /// only once: npm goes on to the end of the step it is at, then takes back what it wrote, and dies at a second signal with
    /// half of it written.
    pub(super) const INSTALLING: Self = Self {
        closed: Duration::from_millis(300),
        signal: Some(Signal::INT),
        asked: Duration::from_secs(5 * 60),
    };

    /// Of the same, once it was asked.
    pub(super) const CLEANING_UP: Self = Self {
        closed: Duration::ZERO,
        signal: None,
        ..Self::INSTALLING
    };
}

/// Everything that came from one server, or from all of them: their groups, and whoever carries the marker.
///
/// Its methods read the process table, which takes milliseconds: not for an async thread.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Family {
    pub(super) groups: Vec<Pid>,
    /// What the marker's value begins with; none: nobody is marked.
    pub(super) marker: Option<String>,
    /// Markers of those that are no part of it all the same.
    pub(super) except: Vec<String>,
}

impl Family {
    pub(super) fn lives(&self) -> bool {
        let group_lives =
            |group: &Pid| test_kill_process_group(*group).is_ok() && table::group_lives(*group);
        self.groups.iter().any(group_lives) || !self.marked().is_empty()
    }

    /// Sends a signal to all of it, once to each: a second one would keep a package manager from cleaning up.
    pub(super) fn signal(&self, signal: Signal) {
        let others = self.marked();
        for group in &self.groups {
            // Gone already is as good as reached.
            let _gone = kill_process_group(*group, signal);
        }
        for process in others {
            if !process.is_in(&self.groups) {
                process.signal(signal);
            }
        }
    }

    pub(super) fn marked(&self) -> Vec<table::Handle> {
        let entry = |marker: &String| format!("{MARKER}={marker}");
        let except: Vec<String> = self.except.iter().map(entry).collect();
        let wanted = self.marker.as_ref();
        wanted.map_or_else(Vec::new, |marker| table::carrying(&entry(marker), &except))
    }
}
