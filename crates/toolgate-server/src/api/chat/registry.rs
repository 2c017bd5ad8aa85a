//! Open conversations, limited in number and each usable only by its caller.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Mutex as TurnMutex;
use tokio::time::Instant;
use toolgate_models::Conversation;

// Each conversation holds its whole history.
const MAX_CHATS: usize = 64;
const MAX_PER_OWNER: usize = MAX_CHATS / 2;
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

#[derive(Default)]
pub(crate) struct ChatRegistry(Mutex<RegistryState>);

#[derive(Default)]
struct RegistryState {
    chats: HashMap<String, Arc<RegisteredChat>>,
    // The provider and name of the model that was chosen last.
    model: Option<(String, String)>,
}

pub(super) struct RegisteredChat {
    pub(super) id: String,
    pub(super) conversation: Arc<TurnMutex<Conversation>>,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) why: String,
    owner: u64,
    last_used: Mutex<Instant>,
}

impl RegisteredChat {
    pub(super) fn new(
        conversation: Conversation,
        provider: String,
        model: String,
        why: String,
        owner: u64,
    ) -> Self {
        // 128 random bits: hashes whose keys come from the system's random source.
        let random = || {
            use std::hash::{BuildHasher, RandomState};
            RandomState::new().hash_one(fastrand::u64(..))
        };
        Self {
            id: format!("{:016x}{:016x}", random(), random()),
            conversation: Arc::new(TurnMutex::new(conversation)),
            provider,
            model,
            why,
            owner,
            last_used: Mutex::new(Instant::now()),
        }
    }

    pub(super) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    fn is_busy(&self) -> bool {
        self.conversation.try_lock().is_err()
    }
}

impl ChatRegistry {
    pub(super) fn find(&self, id: &str, caller: u64) -> Option<Arc<RegisteredChat>> {
        let mut state = self.0.lock();
        state.remove_idle();
        let chat = state.chats.get(id).filter(|chat| chat.owner == caller)?;
        chat.touch();
        Some(Arc::clone(chat))
    }

    /// Adds a conversation. If there are too many, in total or for its caller, the longest idle one
    /// of the caller with the most is evicted. Returns `None` if those are all busy.
    pub(super) fn add(&self, chat: RegisteredChat) -> Option<Arc<RegisteredChat>> {
        let mut state = self.0.lock();
        state.remove_idle();
        let full = match state.count_of_owner(chat.owner) {
            MAX_PER_OWNER.. => Some(chat.owner),
            _ if state.chats.len() >= MAX_CHATS => state.owner_with_most(),
            _ => None,
        };
        if let Some(owner) = full {
            let idle = state.chats.values();
            let idle = idle.filter(|chat| chat.owner == owner && !chat.is_busy());
            let oldest = idle.min_by_key(|chat| *chat.last_used.lock())?.id.clone();
            state.chats.remove(&oldest);
        }
        state.model = Some((chat.provider.clone(), chat.model.clone()));
        let chat = Arc::new(chat);
        state.chats.insert(chat.id.clone(), Arc::clone(&chat));
        Some(chat)
    }

    pub(crate) fn model(&self) -> Option<(String, String)> {
        self.0.lock().model.clone()
    }
}

impl RegistryState {
    fn count_of_owner(&self, owner: u64) -> usize {
        let chats = self.chats.values();
        chats.filter(|chat| chat.owner == owner).count()
    }

    fn owner_with_most(&self) -> Option<u64> {
        let owners = self.chats.values().map(|chat| chat.owner);
        owners.max_by_key(|owner| self.count_of_owner(*owner))
    }

    fn remove_idle(&mut self) {
        self.chats
            .retain(|_, chat| chat.last_used.lock().elapsed() < IDLE_TIMEOUT || chat.is_busy());
    }
}
