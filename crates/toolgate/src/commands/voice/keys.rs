//! The Enter key, which starts a request or interrupts the answer.

use tokio::sync::mpsc;
use toolgate_voice::VoiceKey;

use crate::questions;

// Pending key presses. More would have the same effect.
const MAX_PENDING_KEYS: usize = 4;

pub(super) fn listen() -> mpsc::Receiver<VoiceKey> {
    let (sender, keys) = mpsc::channel(MAX_PENDING_KEYS);
    tokio::spawn(async move {
        while !sender.is_closed() {
            tokio::select! {
                typed = questions::next_line() => match typed {
                    // If the queue is full, another press would change nothing.
                    Some(_line) => drop(sender.try_send(VoiceKey::Talk)),
                    None => return,
                },
                () = sender.closed() => return,
            }
        }
    });
    keys
}
