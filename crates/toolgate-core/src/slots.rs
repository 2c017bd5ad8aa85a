//! Who may run now: so many calls of each server, and as many of all local tools together. A server that hangs fills its own
//! slots and nobody else's.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Source;

/// Held while a call runs.
pub(crate) type Slot = OwnedSemaphorePermit;

pub(crate) struct Slots {
    each: usize,
    local: Arc<Semaphore>,
    /// By name. Never shrinks: there are no more than the configuration has ever had. A snapshot, so that no call waits for
    /// another one here.
    servers: ArcSwap<HashMap<String, Arc<Semaphore>>>,
}

impl Slots {
    pub(crate) fn new(each: usize) -> Self {
        let each = each.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            each,
            local: Arc::new(Semaphore::new(each)),
            servers: ArcSwap::default(),
        }
    }

    /// A slot at once, else where to wait for one.
    pub(crate) fn try_take(&self, source: &Source) -> Result<Slot, Arc<Semaphore>> {
        let slots = self.of(source);
        match Arc::clone(&slots).try_acquire_owned() {
            Ok(slot) => Ok(slot),
            Err(_) => Err(slots),
        }
    }

    fn of(&self, source: &Source) -> Arc<Semaphore> {
        let Source::Mcp(server) = source else {
            return Arc::clone(&self.local);
        };
        match self.servers.load().get(server) {
            Some(slots) => Arc::clone(slots),
            None => self.first_of(server),
        }
    }

    /// Two first calls of a server may come at once: one of them makes its slots, both get the same.
    #[cold]
    fn first_of(&self, server: &str) -> Arc<Semaphore> {
        let fresh = Arc::new(Semaphore::new(self.each));
        self.servers.rcu(|servers| {
            let mut servers = HashMap::clone(servers);
            let slots = servers.entry(server.to_owned());
            slots.or_insert_with(|| Arc::clone(&fresh));
            servers
        });
        self.servers.load().get(server).cloned().unwrap_or(fresh)
    }
}
