//! Events of a conversation in progress, and the listener that receives them.

use std::time::Duration;

use toolgate_core::{CallId, ToolOutcome, ToolWait};

use crate::{AnswerSource, ModelCall, ModelError, StopReason, TokenUsage};

/// What happens during a turn, in order.
#[derive(Debug)]
#[non_exhaustive]
pub enum ModelEvent<'a> {
    Asking {
        /// Rounds are counted from 1.
        round: usize,
        /// How many tools it may choose from; 0 in a last round that must end in words.
        tools: usize,
    },
    Text(&'a str),
    Thinking(&'a str),
    /// Discard the words of this round so far: the reply broke off.
    Void,
    /// Discard the words of this round so far: they were thinking. They follow as `Thinking`.
    WasThinking,
    Retrying {
        error: &'a ModelError,
        after: Duration,
    },
    /// The model is away. Sent only where sentences are asked last: they answer, or the turn fails.
    ModelUnavailable {
        error: &'a ModelError,
    },
    Replied {
        source: AnswerSource,
        round: usize,
        stop: StopReason,
        usage: TokenUsage,
        /// From the question to the first text or call.
        first_token: Option<Duration>,
        took: Duration,
    },
    Waiting {
        /// The tool that is needed; `None` if a model has to know all of them.
        tool: Option<&'a str>,
    },
    Waited,
    Calling {
        call: &'a ModelCall,
        source: AnswerSource,
        /// The executor's id of the call.
        id: CallId,
    },
    Called {
        call: &'a ModelCall,
        source: AnswerSource,
        outcome: &'a ToolOutcome,
    },
    /// Something a person should know: tools left out, a prompt that was cut, a
    /// call rescued from text.
    Notice(&'a str),
}

/// Receives events in order, from one task. It must not block.
pub trait ModelListener: Send {
    fn event(&mut self, event: ModelEvent<'_>);
}

impl<F: FnMut(ModelEvent<'_>) + Send> ModelListener for F {
    fn event(&mut self, event: ModelEvent<'_>) {
        self(event);
    }
}

pub(crate) fn forward_waits(
    listener: &mut (impl ModelListener + ?Sized),
) -> impl FnMut(ToolWait<'_>) + Send {
    |wait| {
        listener.event(match wait {
            ToolWait::Started(tool) => ModelEvent::Waiting { tool },
            ToolWait::Ended => ModelEvent::Waited,
        });
    }
}
