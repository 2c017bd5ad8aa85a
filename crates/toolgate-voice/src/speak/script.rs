//! The words of one answer that wait to be said.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::sentences::{AnswerPiece, SentenceSplitter};

// In bytes. Nobody listens to a longer answer, and it bounds memory.
const MAX_ANSWER_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct AnswerScript {
    state: Mutex<ScriptState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct ScriptState {
    sentences: SentenceSplitter,
    waiting: VecDeque<(u64, AnswerPiece)>,
    bytes: usize,
    round: u64,
    ended: bool,
    truncated: bool,
    saying: SayingGuard,
}

/// Held until a piece has been said to its end.
#[derive(Debug, Clone, Default)]
pub(super) struct SayingGuard(Arc<()>);

impl AnswerScript {
    pub(crate) fn push(&self, words: &str) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        let space = MAX_ANSWER_BYTES.saturating_sub(state.bytes);
        let kept = &words[..words.floor_char_boundary(space)];
        state.truncated |= kept.len() < words.len();
        let pieces = state.sentences.push(kept);
        state.add(pieces);
        drop(state);
        self.changed.notify_one();
    }

    pub(crate) fn take_back(&self) {
        let mut state = self.state.lock();
        let round = state.round;
        state.sentences.clear();
        state
            .waiting
            .retain(|(piece_round, _)| *piece_round != round);
        state.bytes = state
            .waiting
            .iter()
            .map(|(_, piece)| piece.words.len())
            .sum();
    }

    /// Ends the round: the rest becomes a piece, even if it is not a whole sentence.
    pub(crate) fn flush(&self) {
        let mut state = self.state.lock();
        let rest = state.sentences.finish_round();
        state.add(rest);
        state.round += 1;
        drop(state);
        self.changed.notify_one();
    }

    pub(crate) fn end(&self) {
        self.flush();
        self.state.lock().ended = true;
        self.changed.notify_one();
    }

    pub(crate) async fn next(&self) -> Option<AnswerPiece> {
        Some(self.next_to_say().await?.0)
    }

    /// Like `next`, for a reader that holds the guard until the piece has been said.
    pub(super) async fn next_to_say(&self) -> Option<(AnswerPiece, SayingGuard)> {
        loop {
            {
                let mut state = self.state.lock();
                if let Some((_, piece)) = state.waiting.pop_front() {
                    state.bytes -= piece.words.len();
                    return Some((piece, state.saying.clone()));
                }
                if state.ended {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    pub(crate) fn is_said(&self) -> bool {
        let state = self.state.lock();
        state.waiting.is_empty() && Arc::strong_count(&state.saying.0) == 1
    }

    pub(super) fn is_complete(&self) -> bool {
        !self.state.lock().truncated
    }
}

impl ScriptState {
    fn add(&mut self, pieces: impl IntoIterator<Item = AnswerPiece>) {
        for piece in pieces {
            self.bytes += piece.words.len();
            self.waiting.push_back((self.round, piece));
        }
    }
}
