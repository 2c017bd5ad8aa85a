//! The lines that open a chat.

use super::{ChatLoop, LineSource};
use crate::wrap::pluralize;
use crate::{output, wanted_model};

impl ChatLoop<'_> {
    pub(super) fn introduce(&self, source: &LineSource) {
        let who = wanted_model::describe_model(&self.chosen);
        let text = format!("{who}: {}", self.chosen.why);
        tracing::info!("{text}");
        for reason in &self.chosen.skipped {
            tracing::info!("{reason}");
        }
        if !output::is_interactive() {
            return;
        }
        if source.is_typed() {
            output::print_to_stderr(&format!(
                "{who} answers on stdout; each line is one turn, Ctrl-D ends the chat"
            ));
        }
        if source.is_live() {
            self.greet(&who);
        }
    }

    fn greet(&self, who: &str) {
        let tools = self.session.toolbox.current().tools().len();
        let (bold, dim) = (anstyle::Style::new().bold(), anstyle::Style::new().dimmed());
        let tools = pluralize(tools, "tool");
        // Each reason takes a line, and few people want them.
        let more = match self.chosen.skipped.is_empty() {
            true => "",
            false => "; /model says more",
        };
        output::print_to_stderr(&format!(
            "{bold}{who}{bold:#}, {tools} {dim}({}{more}){dim:#}",
            self.chosen.why
        ));
        output::print_to_stderr(&format!(
            "{dim}/help shows what else you can type; Ctrl-D leaves{dim:#}"
        ));
    }
}
