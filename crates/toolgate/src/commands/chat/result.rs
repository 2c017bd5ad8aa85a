//! `/result`: what a tool gave, where it was too much for the model.

use anyhow::Context;
use toolgate_core::escape;

use super::Chat;
use crate::clean::clean;
use crate::say;

impl Chat<'_> {
    /// The whole result of a call; without an id, which ones are kept.
    pub(super) fn show_result(&self, id: &str) -> anyhow::Result<()> {
        if id.is_empty() {
            self.list_results();
            return Ok(());
        }
        let outcome = self.conversation.full_result(id).with_context(|| {
            let id = escape(id);
            format!("no result is kept under '{id}'; /result shows which ones are")
        })?;
        say::result(clean(&outcome.to_model_text()).trim_end());
        Ok(())
    }

    fn list_results(&self) {
        let lines: Vec<String> = self
            .conversation
            .full_results()
            .map(|outcome| format!("{}\t{}", outcome.call_id, escape(&outcome.tool_name)))
            .collect();
        if lines.is_empty() {
            return say::note("no result was too large for the model so far");
        }
        say::result(&lines.join("\n"));
    }
}
