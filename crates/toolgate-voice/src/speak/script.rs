//! The words of one answer that nobody has said yet.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::sentences::{Piece, Sentences};

/// An answer that is longer is nothing to listen to. In bytes that wait.
const LONGEST: usize = 64 << 10;

/// The words of an answer as they come: filled by whoever has them, and emptied by whoever says or sends them.
#[derive(Debug, Default)]
pub(crate) struct Script {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    sentences: Sentences,
    waiting: VecDeque<(u64, Piece)>,
    bytes: usize,
    round: u64,
    ended: bool,
    /// Words were left out, because too many waited.
    cut: bool,
    /// Shared by all pieces that are being said.
    saying: Saying,
}

/// Held as long as a piece that was taken is not said to its end.
#[derive(Debug, Clone, Default)]
pub(super) struct Saying(Arc<()>);

impl Script {
    /// More words. They are a piece as soon as they are a sentence.
    pub(crate) fn push(&self, words: &str) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        let room = LONGEST.saturating_sub(state.bytes);
        let kept = &words[..words.floor_char_boundary(room)];
        state.cut |= kept.len() < words.len();
        let pieces = state.sentences.push(kept);
        state.add(pieces);
        drop(state);
        self.changed.notify_one();
    }

    /// Takes back the words since the last [`flush`](Self::flush) that nobody has taken yet.
    pub(crate) fn void(&self) {
        let mut state = self.state.lock();
        let round = state.round;
        state.sentences.clear();
        state.waiting.retain(|(of, _)| *of != round);
        state.bytes = state
            .waiting
            .iter()
            .map(|(_, piece)| piece.words.len())
            .sum();
    }

    /// What is there is a piece, be it a sentence or not. The next words are a new round.
    pub(crate) fn flush(&self) {
        let mut state = self.state.lock();
        let rest = state.sentences.rest();
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

    /// The next piece, as soon as there is one; none once everything was taken. For one reader.
    pub(crate) async fn next(&self) -> Option<Piece> {
        Some(self.next_to_say().await?.0)
    }

    /// The same for whoever says it, and holds the other half until that is done.
    pub(super) async fn next_to_say(&self) -> Option<(Piece, Saying)> {
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

    /// True if all words that came so far were said to their end.
    pub(crate) fn is_said(&self) -> bool {
        let state = self.state.lock();
        state.waiting.is_empty() && Arc::strong_count(&state.saying.0) == 1
    }

    /// True if nothing was left out for its length.
    pub(super) fn is_whole(&self) -> bool {
        !self.state.lock().cut
    }
}

impl State {
    fn add(&mut self, pieces: impl IntoIterator<Item = Piece>) {
        for piece in pieces {
            self.bytes += piece.words.len();
            self.waiting.push_back((self.round, piece));
        }
    }
}
