//! What all engines have in common: their role and how they fail.

use std::fmt;
use std::time::Duration;

use tokio::time::timeout;

/// The job of an engine, such as transcription or speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineRole {
    Microphone,
    Wake,
    Transcription,
    Speech,
    Loudspeaker,
    Model,
}

impl fmt::Display for EngineRole {
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
pub(crate) struct SpeakingError {
    pub(crate) role: EngineRole,
    pub(crate) error: EngineError,
}

impl SpeakingError {
    pub(crate) fn from_synthesizer(error: EngineError) -> Self {
        let role = EngineRole::Speech;
        Self { role, error }
    }

    pub(crate) fn from_output(error: EngineError) -> Self {
        let role = EngineRole::Loudspeaker;
        Self { role, error }
    }
}

/// Why an engine failed. The message is for an operator: it names the engine and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    #[error("cannot reach {at}: {why}")]
    Unreachable { at: String, why: String },
    #[error("{at} did not answer within {} s", after.as_secs_f64())]
    TimedOut { at: String, after: Duration },
    #[error("{at} closed the connection before answering")]
    Closed { at: String },
    #[error("{at} violates the Wyoming protocol: {why}")]
    Protocol { at: String, why: String },
    #[error("{at} says: {text}")]
    Refused {
        at: String,
        /// The engine's own words, escaped and shortened.
        text: String,
    },
    #[error("{program}: {why}")]
    Program {
        program: String,
        /// What happened, with the end of the program's stderr.
        why: String,
    },
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "texts and errors are passed alike"
)]
impl EngineError {
    pub(crate) fn timed_out(at: impl ToString, after: Duration) -> Self {
        let at = at.to_string();
        Self::TimedOut { at, after }
    }

    pub(crate) fn closed(at: impl ToString) -> Self {
        Self::Closed { at: at.to_string() }
    }

    pub(crate) fn protocol(at: impl ToString, why: impl ToString) -> Self {
        let (at, why) = (at.to_string(), why.to_string());
        Self::Protocol { at, why }
    }

    pub(crate) fn program(program: impl ToString, why: impl ToString) -> Self {
        let (program, why) = (program.to_string(), why.to_string());
        Self::Program { program, why }
    }
}

/// Runs `work`. If it takes longer than `limit`, fails with a timeout of the engine at `at`.
pub(crate) async fn with_deadline<T>(
    limit: Duration,
    at: &(impl fmt::Display + ?Sized),
    work: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    let done = timeout(limit, work).await;
    done.unwrap_or_else(|_| Err(EngineError::timed_out(at, limit)))
}
