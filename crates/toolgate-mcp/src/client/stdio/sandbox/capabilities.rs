//! The rights of an administrator that a confined server has no use for: with some of them it could
//! reach past its sandbox, such as into the memory and the variables of other processes.

use rustix::thread::{
    CapabilitySet, clear_ambient_capability_set, remove_capability_from_bounding_set,
};

/// What working with files takes, and becoming another user.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Gives up the others, from the next program on. Who isn't an administrator has none, and can't.
pub(super) fn give_up() {
    clear_ambient_capability_set().ok();
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        remove_capability_from_bounding_set(capability).ok();
    }
}
