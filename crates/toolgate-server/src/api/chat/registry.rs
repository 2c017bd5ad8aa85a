//! The conversations that go on: bounded, each its caller's alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Mutex as TurnMutex;
use tokio::time::Instant;
use toolgate_models::Conversation;

/// Each holds all that was said.
const MOST: usize = 64;
/// Those of one caller.
const MOST_OF_ONE: usize = MOST / 2;
const IDLE: Duration = Duration::from_secs(3600);

#[derive(Default)]
pub(crate) struct Chats(Mutex<State>);

#[derive(Default)]
struct State {
    chats: HashMap<String, Arc<Chat>>,
    /// Who answered last.
    model: Option<(String, String)>,
}

pub(super) struct Chat {
    pub(super) id: String,
    pub(super) conversation: Arc<TurnMutex<Conversation>>,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) why: String,
    owner: u64,
    touched: Mutex<Instant>,
}

impl Chat {
    pub(super) fn new(
        conversation: Conversation,
        provider: String,
        model: String,
        why: String,
        owner: u64,
    ) -> Self {
        // 128 bits that nobody guesses: hashes with keys of the system's randomness.
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
            touched: Mutex::new(Instant::now()),
        }
    }

    pub(super) fn touch(&self) {
        *self.touched.lock() = Instant::now();
    }

    fn touched(&self) -> Instant {
        *self.touched.lock()
    }

    fn is_busy(&self) -> bool {
        self.conversation.try_lock().is_err()
    }
}

impl Chats {
    pub(super) fn find(&self, id: &str, caller: u64) -> Option<Arc<Chat>> {
        let mut state = self.state();
        state.forget_idle();
        let chat = state.chats.get(id).filter(|chat| chat.owner == caller)?;
        chat.touch();
        Some(Arc::clone(chat))
    }

    /// Takes a conversation in. If there are too many, or too many of its caller, one goes that nobody waits for: the longest idle of
    /// the caller who has most. None if all of those are busy.
    pub(super) fn add(&self, chat: Chat) -> Option<Arc<Chat>> {
        let mut state = self.state();
        state.forget_idle();
        let full = match state.of(chat.owner) {
            MOST_OF_ONE.. => Some(chat.owner),
            _ if state.chats.len() >= MOST => state.busiest(),
            _ => None,
        };
        if let Some(owner) = full {
            let idle = state.chats.values();
            let idle = idle.filter(|chat| chat.owner == owner && !chat.is_busy());
            let oldest = idle.min_by_key(|chat| chat.touched())?.id.clone();
            state.chats.remove(&oldest);
        }
        state.model = Some((chat.provider.clone(), chat.model.clone()));
        let chat = Arc::new(chat);
        state.chats.insert(chat.id.clone(), Arc::clone(&chat));
        Some(chat)
    }

    pub(crate) fn model(&self) -> Option<(String, String)> {
        self.state().model.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    fn of(&self, owner: u64) -> usize {
        let chats = self.chats.values();
        chats.filter(|chat| chat.owner == owner).count()
    }

    fn busiest(&self) -> Option<u64> {
        let owners = self.chats.values().map(|chat| chat.owner);
        owners.max_by_key(|owner| self.of(*owner))
    }

    fn forget_idle(&mut self) {
        self.chats
            .retain(|_, chat| chat.touched().elapsed() < IDLE || chat.is_busy());
    }
}
