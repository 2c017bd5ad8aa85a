//! Full results of which the model was sent only a part. Saved conversations contain them, and a
//! model with a larger context window is sent more of them.

use std::collections::HashMap;

use super::result_text::{self, FullResults};
use crate::{ImageData, ToolResult};

// By call id, which is unique in a history.
#[derive(Default)]
pub(super) struct UncutResults {
    pub(super) results: HashMap<String, UncutResult>,
    pub(super) bytes: usize,
    pub(super) outcomes: FullResults,
}

pub(super) struct UncutResult {
    pub(super) text: String,
    pub(super) images: Vec<ImageData>,
}

impl UncutResult {
    fn bytes(&self) -> usize {
        let images = self.images.iter().map(|image| image.data.len());
        self.text.len() + images.sum::<usize>()
    }
}

impl UncutResults {
    // Keeps the first version of a result, because later ones may have been cut.
    pub(super) fn keep(&mut self, result: &ToolResult) {
        if self.results.contains_key(&result.id) {
            return;
        }
        let whole = UncutResult {
            text: result.text.clone(),
            images: result.images.clone(),
        };
        self.bytes += whole.bytes();
        self.results.insert(result.id.clone(), whole);
    }

    pub(super) fn take(&mut self, id: &str) -> Option<UncutResult> {
        let whole = self.results.remove(id)?;
        self.bytes -= whole.bytes();
        Some(whole)
    }
}

impl ToolResult {
    /// Leaves at most `max` bytes of the text, and moves the full result to `uncut`.
    pub(super) fn cut(&mut self, max: usize, uncut: &mut UncutResults) {
        if self.text.len() > max {
            uncut.keep(self);
            let id = self.call_id.as_deref().filter(|id| uncut.outcomes.keep(id));
            self.text = result_text::cut_text(&self.text, max, id);
        }
    }
}
