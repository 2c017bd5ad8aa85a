//! Drops capabilities that a confined server doesn't need. Some of them would let it escape its
//! sandbox, such as by reading the memory and variables of other processes.

use rustix::thread::{
    CapabilitySet, clear_ambient_capability_set, remove_capability_from_bounding_set,
};

// Needed to work with files and to switch users.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Drops all other capabilities from the next exec on. A user without capabilities can't drop any,
/// and needn't, so errors are ignored.
pub(super) fn give_up() {
    clear_ambient_capability_set().ok();
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        remove_capability_from_bounding_set(capability).ok();
    }
}
