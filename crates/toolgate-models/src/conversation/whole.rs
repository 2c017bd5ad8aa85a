//! Results of which a model is sent only a part. They are kept whole beside the history: a file gets the whole ones, and
//! another model as much of them as it can hold.

use std::collections::HashMap;

use super::cut;
use super::history::History;
use super::window::Keep;
use crate::{Image, Message, ToolResult};

/// Whole results by the id of their call, which is unique in a history.
#[derive(Default)]
pub(super) struct Wholes {
    results: HashMap<String, Whole>,
    bytes: usize,
}

/// What can be cut of a result.
pub(super) struct Whole {
    text: String,
    images: Vec<Image>,
}

impl Whole {
    fn bytes(&self) -> usize {
        let images = self.images.iter().map(|image| image.data.len());
        self.text.len() + images.sum::<usize>()
    }
}

impl Wholes {
    /// Keeps a result that is about to be cut, unless it was cut before.
    pub(super) fn keep(&mut self, result: &ToolResult) {
        if self.results.contains_key(&result.id) {
            return;
        }
        let whole = Whole {
            text: result.text.clone(),
            images: result.images.clone(),
        };
        self.bytes += whole.bytes();
        self.results.insert(result.id.clone(), whole);
    }

    pub(super) fn take(&mut self, id: &str) -> Option<Whole> {
        let whole = self.results.remove(id)?;
        self.bytes -= whole.bytes();
        Some(whole)
    }
}

impl ToolResult {
    /// Leaves no more than `most` bytes of the text; the whole goes to `wholes`.
    pub(super) fn cut(&mut self, most: usize, keep: Keep<'_>, wholes: &mut Wholes) {
        if self.text.len() > most {
            wholes.keep(self);
            let id = self.call_id.as_deref().filter(|id| keep(id));
            self.text = cut::cut(&self.text, most, id);
        }
    }
}

impl History {
    /// Cuts all results anew, for a model that is given `most` bytes of each of so many.
    pub(super) fn cut_for(&mut self, most: &dyn Fn(usize) -> usize, keep: Keep<'_>) {
        for index in 0..self.messages.len() {
            let Message::Tool { results } = &mut self.messages[index] else {
                continue;
            };
            let most = most(results.len());
            for result in results {
                if let Some(Whole { text, images }) = self.wholes.take(&result.id) {
                    (result.text, result.images) = (text, images);
                }
                result.cut(most, keep, &mut self.wholes);
            }
            self.measure(index);
        }
    }

    /// All of it, and no result in part that is still kept whole.
    pub(super) fn whole_messages(&self) -> Vec<Message> {
        let mut messages = self.messages().to_vec();
        for message in &mut messages {
            let Message::Tool { results } = message else {
                continue;
            };
            for result in results {
                if let Some(Whole { text, images }) = self.wholes.results.get(&result.id) {
                    result.text.clone_from(text);
                    result.images.clone_from(images);
                }
            }
        }
        messages
    }

    /// Lets the oldest go until no more than this many bytes are kept beside the history.
    pub(super) fn forget_wholes(&mut self, most: usize) {
        let results = self.messages.iter().filter_map(|message| match message {
            Message::Tool { results } => Some(results),
            _ => None,
        });
        for result in results.flatten() {
            if self.wholes.bytes <= most {
                break;
            }
            self.wholes.take(&result.id);
        }
    }
}
