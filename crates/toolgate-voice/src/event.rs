//! The events that a gateway sends to its observer.

use std::path::Path;
use std::time::Duration;

use toolgate_core::{CallId, ToolOutcome};
use toolgate_journal::VoiceTurn;

use crate::EngineRole;

/// What the gateway is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VoiceState {
    Starting,
    /// Waiting for the wake word or a key.
    Waiting,
    /// Waiting for the person to speak.
    Listening,
    /// Recording while the person is speaking.
    Hearing,
    Transcribing,
    Thinking,
    Calling(String),
    Speaking,
}

/// Something that happened in the gateway, for a [`VoiceObserver`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum VoiceEvent<'a> {
    /// One part of the startup has ended. `problem` says what failed.
    Phase {
        name: &'a str,
        took: Duration,
        problem: Option<&'a str>,
    },
    /// Sent once: requests are accepted from now on.
    Ready {
        /// A sentence about what doesn't work, which is also spoken.
        degraded: Option<&'a str>,
    },
    /// Which tool servers are unreachable. Sent at the end of the startup and whenever it changes.
    Tools {
        /// In words, such as `the smart home`. `None` if all are connected.
        missing: Option<&'a str>,
    },
    State(&'a VoiceState),
    /// The microphone's level from 0 to 1, a few times a second.
    Level(f32),
    /// A request was understood or received as text.
    Heard {
        /// Where it came from, such as `microphone` or `handle`.
        source: &'a str,
        text: &'a str,
        /// How long transcription took. `None` for a request that was received as text.
        took: Option<Duration>,
    },
    /// The next input file begins.
    File(&'a Path),
    /// An utterance is not answered: it is not a request, or the queue is full.
    Dropped {
        source: &'a str,
        heard: &'a str,
        why: &'a str,
    },
    Calling {
        id: CallId,
        name: &'a str,
        arguments: &'a str,
    },
    Called(&'a ToolOutcome),
    /// More words of the answer, as the model sends them.
    Words(&'a str),
    /// Discard the words since the last tool call, or since the request. The model took them back.
    TakenBack,
    Turn(&'a VoiceTurn),
    /// An engine failed. Not sent again until it is back.
    Lost {
        role: EngineRole,
        why: &'a str,
    },
    Back(EngineRole),
}

/// Receives the gateway's events. Several tasks call it, so it must not block.
pub trait VoiceObserver: Send + Sync {
    fn event(&self, event: VoiceEvent<'_>);
}
