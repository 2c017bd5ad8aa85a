//! Prints above the line that a person is typing, which is then drawn again below.

use std::sync::mpsc::{SyncSender, sync_channel};

use parking_lot::Mutex;

// If more lines wait, they are written directly, so that a slow terminal doesn't block the caller.
const MAX_PENDING_LINES: usize = 256;

// Receives output while a line is being typed.
static ABOVE: Mutex<Option<SyncSender<String>>> = Mutex::new(None);

pub(crate) struct LinePrompt(SyncSender<String>);

pub(crate) struct TypingGuard(());

impl LinePrompt {
    /// `print` prints lines above the one being typed. It has its own thread, so it may block.
    pub(crate) fn new(print: impl FnMut(String) + Send + 'static) -> Self {
        let (sender, lines) = sync_channel(MAX_PENDING_LINES);
        std::thread::spawn(move || lines.into_iter().for_each(print));
        Self(sender)
    }

    pub(crate) fn typing(&self) -> TypingGuard {
        *ABOVE.lock() = Some(self.0.clone());
        TypingGuard(())
    }
}

impl Drop for TypingGuard {
    fn drop(&mut self) {
        let _was_typing = stop_typing();
    }
}

/// Stops printing above the line, even if the editor still waits for it. Returns true if a
/// line was being typed.
pub(crate) fn stop_typing() -> bool {
    ABOVE.lock().take().is_some()
}

/// Prints above the line being typed. Returns false if there is none, and the caller has to print.
pub(crate) fn print_above(bytes: &[u8]) -> bool {
    let above = ABOVE.lock();
    let Some(lines) = above.as_ref() else {
        return false;
    };
    lines
        .try_send(String::from_utf8_lossy(bytes).into_owned())
        .is_ok()
}
