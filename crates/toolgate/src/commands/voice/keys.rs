//! The key that begins and interrupts.

use tokio::sync::mpsc;
use toolgate_voice::Key;

use crate::questions;

/// Keys that nobody has taken yet; more of them mean the same.
const WAITING: usize = 4;

pub(super) fn listen() -> mpsc::Receiver<Key> {
    let (sender, keys) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        while !sender.is_closed() {
            tokio::select! {
                typed = questions::typed() => match typed {
                    // One that finds no room says nothing new.
                    Some(_line) => drop(sender.try_send(Key::Talk)),
                    None => return,
                },
                () = sender.closed() => return,
            }
        }
    });
    keys
}
