//! What can be seen of a conversation while it goes on.

use std::time::Duration;

use toolgate_core::{CallId, ToolOutcome, ToolWait};

use crate::{AnswerSource, ModelCall, ModelError, Stop, Usage};

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A question goes to the model.
    Asking {
        /// Counted from 1.
        round: usize,
        /// How many tools it may choose from; none in a last round that must end in words.
        tools: usize,
    },
    /// Words for the person.
    Text(&'a str),
    /// Words of the model for itself.
    Thinking(&'a str),
    /// The words of this round that came so far do not count: the answer broke off.
    Void,
    /// The words for the person that came so far in this round were thinking after all, and come again as such.
    WasThinking,
    /// The model could not be reached, and will be tried again.
    Retrying {
        /// Why.
        error: &'a ModelError,
        /// When.
        after: Duration,
    },
    /// The model is away, which is told where sentences are asked last: they answer, or the turn fails.
    ModelAway {
        /// Why it could not be asked.
        error: &'a ModelError,
    },
    /// All that there is to say in this round was said.
    Replied {
        /// Who answered.
        source: AnswerSource,
        /// Counted from 1.
        round: usize,
        /// Why it stopped.
        stop: Stop,
        /// What it cost.
        usage: Usage,
        /// From the question to the first words or call.
        first_token: Option<Duration>,
        /// From the question to the end.
        took: Duration,
    },
    /// The turn waits for tools of servers that are still starting.
    Waiting {
        /// Which one is needed; none if a model is to know all of them.
        tool: Option<&'a str>,
    },
    /// It goes on, with what came or without.
    Waited,
    /// A tool starts.
    Calling {
        /// What is called.
        call: &'a ModelCall,
        /// Who asked for it.
        source: AnswerSource,
        /// The executor's id of it.
        id: CallId,
    },
    /// A tool is done, well or not.
    Called {
        /// What was called.
        call: &'a ModelCall,
        /// Who asked for it.
        source: AnswerSource,
        /// What came of it.
        outcome: &'a ToolOutcome,
    },
    /// Something a person should know: tools left out, a prompt that was cut, a call rescued from text.
    Notice(&'a str),
}

/// Hears what happens. Called in order, from one task; it must not block.
///
/// ```
/// use toolgate_models::{Event, Listener};
///
/// let mut words = String::new();
/// let mut listener = |event: Event<'_>| if let Event::Text(text) = event { words.push_str(text) };
/// listener.event(Event::Text("hello"));
/// assert_eq!(words, "hello");
/// ```
pub trait Listener: Send {
    /// Something happened.
    fn event(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>) + Send> Listener for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}

pub(crate) fn tell_waits(
    listener: &mut (impl Listener + ?Sized),
) -> impl FnMut(ToolWait<'_>) + Send {
    |wait| {
        listener.event(match wait {
            ToolWait::Started(tool) => Event::Waiting { tool },
            ToolWait::Ended => Event::Waited,
        });
    }
}
