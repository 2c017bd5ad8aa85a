//! Ctrl-Z at the prompt. The editor's own way takes the terminal again before the program has stopped, so it leaves instead, and
//! comes back with the same line.

use std::sync::Arc;

use parking_lot::Mutex;
use rustyline::{Cmd, ConditionalEventHandler, Event, EventContext, RepeatCount};

/// The line that was there when Ctrl-Z was pressed, before the cursor and behind it. Clones are the same line.
#[derive(Clone, Default)]
pub(super) struct Asleep(Arc<Mutex<Option<(String, String)>>>);

impl Asleep {
    pub(super) fn take(&self) -> Option<(String, String)> {
        self.0.lock().take()
    }
}

impl ConditionalEventHandler for Asleep {
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
