//! Walks over history for the providers' writers, and gives every call exactly one result.

use crate::{AssistantMessage, Message, ModelCall, ToolResult};

pub(crate) const NO_RESULT: &str = "(no result: the call was stopped)";
pub(crate) const NO_WORDS: &str = "(no words)";
/// The text of an empty result, as fixed by requirement EX10. Some APIs refuse empty text.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// Writes history in one provider's format.
pub(crate) trait TranscriptWriter<'a> {
    /// The id that is sent for a call. `taken` has the ids of earlier calls in the same message.
    fn sent_id(&mut self, call: &'a ModelCall, taken: &[String]) -> String;

    fn user(&mut self, text: &'a str);

    /// `ids` are the sent ids of the message's calls, in order.
    fn assistant(&mut self, message: &'a AssistantMessage, ids: Vec<String>);

    /// `None` if the turn was stopped before the call ended.
    fn result(&mut self, id: String, call: &'a ModelCall, result: Option<&'a ToolResult>);
}

// Providers accept neither a call without a result nor a result without its call, so missing
// results are filled in and stray ones dropped.
pub(crate) fn write<'a>(history: &'a [Message], writer: &mut impl TranscriptWriter<'a>) {
    let mut open: Vec<(&ModelCall, String)> = Vec::new();
    for message in history {
        if let Message::Tool { results } = message {
            for result in results {
                if let Some(place) = open.iter().position(|(call, _)| call.id == result.id) {
                    let (call, id) = open.remove(place);
                    writer.result(id, call, Some(result));
                }
            }
            continue;
        }
        for (call, id) in open.drain(..) {
            writer.result(id, call, None);
        }
        match message {
            Message::User { text } => writer.user(text),
            Message::Assistant(message) => {
                let mut ids = Vec::new();
                for call in message.calls() {
                    ids.push(writer.sent_id(call, &ids));
                }
                open.extend(message.calls().zip(ids.iter().cloned()));
                writer.assistant(message, ids);
            }
            Message::Tool { .. } => {}
        }
    }
    for (call, id) in open {
        writer.result(id, call, None);
    }
}
