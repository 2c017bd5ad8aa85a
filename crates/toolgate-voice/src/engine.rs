//! What all engines have in common: a role, and ways to fail.

use std::fmt;
use std::time::Duration;

use tokio::time::timeout;

/// What an engine does for the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Gives sound.
    Microphone,
    /// Hears its name.
    Wake,
    /// Makes text of speech.
    Transcription,
    /// Makes speech of text.
    Speech,
    /// Plays sound.
    Loudspeaker,
    /// Answers.
    Model,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Microphone => "microphone",
            Self::Wake => "wake word",
            Self::Transcription => "transcription",
            Self::Speech => "speech",
            Self::Loudspeaker => "loudspeaker",
            Self::Model => "model",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub(crate) struct Problem {
    pub(crate) role: Role,
    pub(crate) error: EngineError,
}

impl Problem {
    pub(crate) fn of_speech(error: EngineError) -> Self {
        let role = Role::Speech;
        Self { role, error }
    }

    pub(crate) fn of_loudspeaker(error: EngineError) -> Self {
        let role = Role::Loudspeaker;
        Self { role, error }
    }
}

/// Why an engine did not do its work. The text is for an operator: it names the engine and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Nobody answers there.
    #[error("cannot reach {at}: {why}")]
    Unreachable {
        /// Where.
        at: String,
        /// What the system says.
        why: String,
    },
    /// It took too long.
    #[error("{at} did not answer within {} s", after.as_secs_f64())]
    TimedOut {
        /// Where.
        at: String,
        /// How long it had.
        after: Duration,
    },
    /// It went away in the middle.
    #[error("{at} closed the connection before it had answered")]
    Closed {
        /// Where.
        at: String,
    },
    /// It sent what nobody understands.
    #[error("{at} does not speak Wyoming as it should: {why}")]
    Protocol {
        /// Where.
        at: String,
        /// What is wrong.
        why: String,
    },
    /// It said itself that it failed.
    #[error("{at} says: {text}")]
    Refused {
        /// Where.
        at: String,
        /// Its words, escaped and cut.
        text: String,
    },
    /// A program that is needed is not there or failed.
    #[error("{program}: {why}")]
    Program {
        /// Its name.
        program: String,
        /// What happened, with the end of what it wrote to stderr.
        why: String,
    },
}

impl EngineError {
    pub(crate) fn timed_out(at: impl Into<String>, after: Duration) -> Self {
        let at = at.into();
        Self::TimedOut { at, after }
    }

    pub(crate) fn closed(at: impl Into<String>) -> Self {
        Self::Closed { at: at.into() }
    }

    pub(crate) fn protocol(at: impl Into<String>, why: impl Into<String>) -> Self {
        let (at, why) = (at.into(), why.into());
        Self::Protocol { at, why }
    }

    pub(crate) fn program(program: impl Into<String>, why: impl Into<String>) -> Self {
        let (program, why) = (program.into(), why.into());
        Self::Program { program, why }
    }
}

/// What work comes to; an error of the engine at `at` if it takes longer than `limit`.
pub(crate) async fn within<T>(
    limit: Duration,
    at: &(impl fmt::Display + ?Sized),
    work: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    let done = timeout(limit, work).await;
    done.unwrap_or_else(|_| Err(EngineError::timed_out(at.to_string(), limit)))
}
