//! The line that a person is typing, and what is said meanwhile: that stands above the line, which is drawn again below it.

use std::sync::mpsc::{SyncSender, sync_channel};

use parking_lot::{Mutex, MutexGuard};

/// More than this at once is written where it falls: nobody waits for a terminal.
const MOST_WAITING: usize = 256;

/// Takes what is said for as long as a line is typed.
static ABOVE: Mutex<Option<SyncSender<String>>> = Mutex::new(None);

pub(crate) struct Prompt(SyncSender<String>);

/// Keeps what is said above the line until this is dropped.
pub(crate) struct Typing(());

impl Prompt {
    /// `print` prints lines above the one that is typed. It may block: it has a thread of its own.
    pub(crate) fn new(print: impl FnMut(String) + Send + 'static) -> Self {
        let (sender, lines) = sync_channel(MOST_WAITING);
        std::thread::spawn(move || lines.into_iter().for_each(print));
        Self(sender)
    }

    pub(crate) fn typing(&self) -> Typing {
        *above() = Some(self.0.clone());
        Typing(())
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        let _was_typing = leave();
    }
}

/// Nobody types any more, also where the editor still waits for it. True if a line was being typed.
pub(crate) fn leave() -> bool {
    above().take().is_some()
}

/// Says something above the line that is being typed. False if none is: then it has to be written by whoever has it.
pub(crate) fn say_above(bytes: &[u8]) -> bool {
    let above = above();
    let Some(lines) = above.as_ref() else {
        return false;
    };
    lines
        .try_send(String::from_utf8_lossy(bytes).into_owned())
        .is_ok()
}

fn above() -> MutexGuard<'static, Option<SyncSender<String>>> {
    ABOVE.lock()
}
