//! The events of a turn in progress, and the listener that receives them.

use std::time::Duration;

use toolgate_core::{CallId, ToolOutcome, ToolWait};

use crate::{AnswerSource, ModelCall, ModelError, StopReason, TokenUsage};

/// Something that happens during a turn.
#[derive(Debug)]
#[non_exhaustive]
pub enum ModelEvent<'a> {
    /// The model is asked.
    Asking {
        /// Rounds are counted from 1.
        round: usize,
        /// How many tools are offered; 0 if the model must answer in words.
        tools: usize,
    },
    /// A piece of the answer.
    Text(&'a str),
    /// A piece of the model's thinking.
    Thinking(&'a str),
    /// The text and thinking of this round so far must be discarded: the reply broke off.
    Void,
    /// The text of this round so far was thinking, and must be discarded as text.
    /// It follows as `Thinking`.
    WasThinking,
    /// An attempt failed, and another follows.
    Retrying {
        error: &'a ModelError,
        /// The pause before the next attempt.
        after: Duration,
    },
    /// The model can't be reached or doesn't answer. Sent only if sentences stand in for it: they
    /// answer, or the turn fails.
    ModelUnavailable { error: &'a ModelError },
    /// A round's reply is complete.
    Replied {
        source: AnswerSource,
        round: usize,
        stop: StopReason,
        usage: TokenUsage,
        /// From the question to the first text or call.
        first_token: Option<Duration>,
        took: Duration,
    },
    /// The turn waits for tools whose servers are still starting.
    Waiting {
        /// The tool that is needed; `None` if the model needs the whole list.
        tool: Option<&'a str>,
    },
    /// The wait that `Waiting` announced is over.
    Waited,
    /// A call is about to run.
    Calling {
        call: &'a ModelCall,
        source: AnswerSource,
        /// The executor's id of the call.
        id: CallId,
    },
    /// A call has ended.
    Called {
        call: &'a ModelCall,
        source: AnswerSource,
        outcome: &'a ToolOutcome,
    },
    /// A sentence for the user: about tools that were left out, a prompt that was cut, a
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
