//! Resource limits for each process of a confined server. Only a runaway process reaches them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

// No core dumps, because they would contain the server's secrets. The process limit counts all
// processes of the user, so it is high enough for a desktop.
const LIMITS: [(Resource, u64); 4] = [
    (Resource::Core, 0),
    (Resource::Nofile, 65_536),
    (Resource::Nproc, 16_384),
    (Resource::Fsize, 64 * 1024 * 1024 * 1024),
];

pub(super) fn set() {
    for (resource, limit) in LIMITS {
        let now = getrlimit(resource);
        let lower = |value: Option<u64>| Some(value.map_or(limit, |value| value.min(limit)));
        let wanted = Rlimit {
            current: lower(now.current),
            maximum: lower(now.maximum),
        };
        // Can't fail, because lowering a limit is always allowed.
        setrlimit(resource, wanted).ok();
    }
}
