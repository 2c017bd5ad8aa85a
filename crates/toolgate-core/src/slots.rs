//! [`CallSlots`]: limits how many calls run at once, per server and for all local tools together. A
//! server that hangs fills only its own slots.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ToolSource;

pub(crate) type CallSlot = OwnedSemaphorePermit;

pub(crate) struct CallSlots {
    each: usize,
    local: Arc<Semaphore>,
    // Never shrinks, but only configured servers are ever added. A snapshot rather than a lock, so
    // that calls don't wait for each other here.
    servers: ArcSwap<HashMap<String, Arc<Semaphore>>>,
}

impl CallSlots {
    pub(crate) fn new(each: usize) -> Self {
        let each = each.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            each,
            local: Arc::new(Semaphore::new(each)),
            servers: ArcSwap::default(),
        }
    }

    /// Takes a slot if one is free, else returns the semaphore to wait on.
    pub(crate) fn try_acquire(&self, source: &ToolSource) -> Result<CallSlot, Arc<Semaphore>> {
        let slots = self.semaphore_for(source);
        match Arc::clone(&slots).try_acquire_owned() {
            Ok(slot) => Ok(slot),
            Err(_) => Err(slots),
        }
    }

    fn semaphore_for(&self, source: &ToolSource) -> Arc<Semaphore> {
        let ToolSource::Mcp(server) = source else {
            return Arc::clone(&self.local);
        };
        match self.servers.load().get(server) {
            Some(slots) => Arc::clone(slots),
            None => self.create_semaphore(server),
        }
    }

    // Two first calls to a server may race: both must end up with the same semaphore.
    #[cold]
    fn create_semaphore(&self, server: &str) -> Arc<Semaphore> {
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
