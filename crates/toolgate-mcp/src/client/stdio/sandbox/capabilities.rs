//! Drops capabilities that a confined server doesn't need. With some of them it could escape its
//! sandbox, for example by reading the memory and variables of other processes.

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

/// Drops all other capabilities at the next exec. Errors are ignored: a user without capabilities
/// can't drop any, and doesn't need to.
pub(super) fn drop_unneeded() {
    clear_ambient_capability_set().ok();
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        remove_capability_from_bounding_set(capability).ok();
    }
}
