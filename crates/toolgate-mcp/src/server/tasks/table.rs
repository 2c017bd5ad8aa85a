//! [`TaskTable`]: all tasks of all clients, limited in number and size.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use toolgate_core::TaskStore;

use super::TaskSettings;
use super::task::{ClientTask, TaskSummary};
use super::task_end::TaskEnd;
use crate::server::jsonrpc::RequestError;

const MAX_TASKS: usize = 1000;
// Tasks of one caller, who can't use up all of them.
const MAX_PER_OWNER: usize = 250;
// The results of all tasks together, and of one caller's.
const MAX_BYTES: usize = 64 << 20;
const MAX_BYTES_PER_OWNER: usize = 32 << 20;
// Each lookup reads the journal's file.
const MAX_LOOKUPS: usize = 4;

pub(in crate::server) struct TaskTable {
    pub(in crate::server) settings: TaskSettings,
    tasks: Mutex<HashMap<String, KeptTask>>,
    store: OnceLock<Arc<dyn TaskStore>>,
    pub(super) lookups: Semaphore,
}

struct KeptTask {
    task: Arc<ClientTask>,
    bytes: usize,
}

impl TaskTable {
    pub(in crate::server) fn new(settings: TaskSettings) -> Self {
        Self {
            settings,
            tasks: Mutex::default(),
            store: OnceLock::new(),
            lookups: Semaphore::new(MAX_LOOKUPS),
        }
    }

    pub(in crate::server) fn set_store(&self, store: Arc<dyn TaskStore>) {
        drop(self.store.set(store));
    }

    pub(super) fn store(&self) -> Option<&Arc<dyn TaskStore>> {
        self.store.get()
    }

    /// False if there are too many tasks, of all clients or of this one.
    pub(super) fn add(&self, key: String, task: Arc<ClientTask>) -> bool {
        let mut tasks = self.tasks.lock();
        tasks.retain(|_, kept| !kept.task.is_expired());
        let owner = &task.record.owner;
        let theirs = tasks
            .values()
            .filter(|kept| kept.task.record.owner == *owner);
        let has_room = tasks.len() < MAX_TASKS && theirs.count() < MAX_PER_OWNER;
        if has_room {
            tasks.insert(key, KeptTask { task, bytes: 0 });
        }
        has_room
    }

    pub(super) fn find(&self, key: &str) -> Option<Arc<ClientTask>> {
        let mut tasks = self.tasks.lock();
        let task = Arc::clone(&tasks.get(key)?.task);
        if task.is_expired() {
            tasks.remove(key);
            return None;
        }
        Some(task)
    }

    /// Makes room for a task's result. Returns an error instead if there is none.
    pub(super) fn reserve(&self, task: &ClientTask, end: TaskEnd) -> TaskEnd {
        let bytes = end.bytes();
        let mut tasks = self.tasks.lock();
        tasks.retain(|_, kept| !kept.task.is_expired());
        let (mut all, mut theirs) = (bytes, bytes);
        for kept in tasks.values() {
            all += kept.bytes;
            if kept.task.record.owner == task.record.owner {
                theirs += kept.bytes;
            }
        }
        if all > MAX_BYTES || theirs > MAX_BYTES_PER_OWNER {
            let text = "the result can't be kept: too many results of tasks wait to be fetched";
            return TaskEnd::failed(RequestError::new(RequestError::INTERNAL_ERROR, text));
        }
        let key = task.record.key.as_deref().unwrap_or_default();
        if let Some(kept) = tasks.get_mut(key) {
            kept.bytes = bytes;
        }
        end
    }

    /// The tasks that run or wait, the oldest first.
    pub(in crate::server) fn running(&self) -> Vec<TaskSummary> {
        let tasks = self.tasks.lock();
        let running = tasks.values().filter(|kept| !kept.task.has_ended());
        let mut running: Vec<_> = running.map(|kept| kept.task.summary()).collect();
        drop(tasks);
        running.sort_by_key(|task| task.call);
        running
    }

    pub(in crate::server) fn find_by_call(&self, call: &str) -> Option<Arc<ClientTask>> {
        let tasks = self.tasks.lock();
        let mut running = tasks.values().filter(|kept| !kept.task.has_ended());
        let found = running.find(|kept| kept.task.record.call.to_string() == call);
        found.map(|kept| Arc::clone(&kept.task))
    }
}
