//! Replaces the process table on systems without `/proc`, where only groups can be signalled.

use rustix::process::{Pid, Signal};

pub(super) enum ProcessHandle {}

impl ProcessHandle {
    pub(super) fn signal(&self, _signal: Signal) {
        match *self {}
    }

    pub(super) fn is_in(&self, _groups: &[Pid]) -> bool {
        match *self {}
    }
}

/// Zombies can't be told from live processes here.
pub(super) fn is_group_alive(_group: Pid) -> bool {
    true
}

/// Memory can't be measured here, so no limit is ever exceeded.
pub(super) fn memory(_group: Pid) -> u64 {
    0
}

pub(super) fn find_marked(_entry: &str, _except: &[String]) -> Vec<ProcessHandle> {
    Vec::new()
}
