//! Ctrl-Z at the prompt. The editor's own handling takes the terminal back before the program has
//! stopped, so the editor is left instead, and entered again with the same line.

use std::sync::Arc;

use parking_lot::Mutex;
use rustyline::{Cmd, ConditionalEventHandler, Event, EventContext, RepeatCount};

/// The text before and after the cursor when Ctrl-Z was pressed. Clones share it.
#[derive(Clone, Default)]
pub(super) struct SuspendedLine(Arc<Mutex<Option<(String, String)>>>);

impl SuspendedLine {
    pub(super) fn take(&self) -> Option<(String, String)> {
        self.0.lock().take()
    }
}

impl ConditionalEventHandler for SuspendedLine {
    fn handle(
        &self,
        _event: &Event,
        _count: RepeatCount,
        _positive: bool,
        context: &EventContext<'_>,
    ) -> Option<Cmd> {
        let (before, behind) = context.line().split_at_checked(context.pos())?;
        let line = (before.to_owned(), behind.to_owned());
        *self.0.lock() = Some(line);
        Some(Cmd::Interrupt)
    }
}
