//! The first words of a chat.

use super::{Chat, Source};
use crate::{say, wanted_model};

impl Chat<'_> {
    pub(super) fn introduce(&self, source: &Source) {
        let who = wanted_model::described(&self.chosen);
        let text = format!("{who}: {}", self.chosen.why);
        tracing::info!("{text}");
        for reason in &self.chosen.passed_over {
            tracing::info!("{reason}");
        }
        if !say::is_followed() {
            return;
        }
        if source.is_typed() {
            say::line(&format!(
                "{who} answers where stdout goes: one line is one turn, Ctrl-D ends"
            ));
        }
        if source.is_live() {
            self.greet(&who);
        }
    }

    fn greet(&self, who: &str) {
        let tools = self.setting.toolbox.current().tools().len();
        let (bold, dim) = (anstyle::Style::new().bold(), anstyle::Style::new().dimmed());
        let noun = if tools == 1 { "tool" } else { "tools" };
        // The reasons are a line each, and few want to know them.
        let more = match self.chosen.passed_over.is_empty() {
            true => "",
            false => "; /model says more",
        };
        say::line(&format!(
            "{bold}{who}{bold:#}, {tools} {noun} {dim}({}{more}){dim:#}",
            self.chosen.why
        ));
        say::line(&format!(
            "{dim}/help shows what else you can type; Ctrl-D leaves{dim:#}"
        ));
    }
}
