//! What can be seen of the gateway while it runs.

use std::path::Path;
use std::time::Duration;

use toolgate_core::{CallId, ToolOutcome};
use toolgate_journal::VoiceTurn;

use crate::Role;

/// What the gateway is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Not ready yet.
    Starting,
    /// Waits for its name, or for a key.
    Waiting,
    /// Waits for speech.
    Listening,
    /// Somebody speaks.
    Hearing,
    /// Makes text of it.
    Transcribing,
    /// The model has the word.
    Thinking,
    /// A tool is at work.
    Calling(String),
    /// The answer is spoken.
    Speaking,
}

/// Something that happened.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A part of the start is over, well or not.
    Phase {
        /// Which.
        name: &'a str,
        /// How long it took.
        took: Duration,
        /// Why it failed, if it did.
        problem: Option<&'a str>,
    },
    /// Told once: requests are taken from now on.
    Ready {
        /// What does not work, in words for a person; they are also spoken.
        degraded: Option<&'a str>,
    },
    /// Which servers of tools are away, in words, such as `the smart home`: at the end of the start, and whenever that changes.
    Tools {
        /// None if all are there.
        missing: Option<&'a str>,
    },
    /// It does something else now.
    State(&'a State),
    /// How loud it is, from 0 to 1, a few times a second.
    Level(f32),
    /// Somebody said this, or wrote it.
    Heard {
        /// Where, such as `microphone` or `handle`.
        source: &'a str,
        /// The words.
        text: &'a str,
        /// How long it took to make text of it; none if it came as text.
        took: Option<Duration>,
    },
    /// What is heard from now on is in this file.
    File(&'a Path),
    /// Something that was heard is not answered: it is no request, or there was no room for it.
    Dropped {
        /// Where it was heard, such as `microphone` or `wav`.
        source: &'a str,
        /// What was understood of it; empty if nothing was.
        heard: &'a str,
        /// Why it is not answered.
        why: &'a str,
    },
    /// A tool starts.
    Calling {
        /// Which call.
        id: CallId,
        /// Its name.
        name: &'a str,
        /// What it is given, as JSON.
        arguments: &'a str,
    },
    /// A tool is done, well or not.
    Called(&'a ToolOutcome),
    /// Words of the answer, as they come.
    Words(&'a str),
    /// The words that came since a tool was called last, or since the request, are no part of the answer after all.
    TakenBack,
    /// A turn is over.
    Turn(&'a VoiceTurn),
    /// An engine is gone. Told once until it is back.
    Lost {
        /// What it did.
        role: Role,
        /// What happened.
        why: &'a str,
    },
    /// An engine that was lost is there again.
    Back(Role),
}

/// Sees what happens. Called from several tasks; it must not block.
pub trait Watcher: Send + Sync {
    /// Something happened.
    fn event(&self, event: Event<'_>);
}
