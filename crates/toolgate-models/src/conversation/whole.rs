//! Results of which a model is sent only a part. They are kept whole beside the history: a file gets the whole ones, and
//! another model as much of them as it can hold.

use std::collections::HashMap;

use super::cut;
use super::window::Keep;
use crate::{Image, ToolResult};

/// Whole results by the id of their call, which is unique in a history.
#[derive(Default)]
pub(super) struct Wholes {
    pub(super) results: HashMap<String, Whole>,
    pub(super) bytes: usize,
}

pub(super) struct Whole {
    pub(super) text: String,
    pub(super) images: Vec<Image>,
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
