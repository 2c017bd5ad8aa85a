//! `/result`: what a tool gave, where it was too much for the model.

use anyhow::bail;
use toolgate_core::{ToolOutcome, escape};

use super::Chat;
use crate::clean::clean;
use crate::say;

impl Chat<'_> {
    /// The whole result of a call; without a name for it, which ones are kept.
    pub(super) fn show_result(&self, wanted: &str) -> anyhow::Result<()> {
        let kept: Vec<_> = self.conversation.full_results().collect();
        if wanted.is_empty() {
            list(&kept);
            return Ok(());
        }
        let shown = escape(wanted);
        match meant(&kept, wanted)[..] {
            [outcome] => say::result(clean(&outcome.to_model_text()).trim_end()),
            [] => bail!("no result is kept under '{shown}'; /result shows which ones are"),
            _ => bail!("several results are kept under '{shown}'; /result shows their ids"),
        }
        Ok(())
    }
}

/// Those that a person may mean: by the id, its beginning or its end (calls of one moment differ there alone), or by the name of
/// the tool.
fn meant<'a>(kept: &[&'a ToolOutcome], wanted: &str) -> Vec<&'a ToolOutcome> {
    let is_meant = |outcome: &&ToolOutcome| {
        let id = outcome.call_id.to_string();
        outcome.tool_name == wanted || id.starts_with(wanted) || id.ends_with(wanted)
    };
    kept.iter().copied().filter(is_meant).collect()
}

fn list(kept: &[&ToolOutcome]) {
    let lines: Vec<String> = kept
        .iter()
        .map(|outcome| format!("{}\t{}", outcome.call_id, escape(&outcome.tool_name)))
        .collect();
    let how = match kept {
        [] => return say::note("no result was too large for the model so far"),
        [only] => format!("/result {} shows it", escape(&only.tool_name)),
        _ => "/result and the beginning or the end of an id shows one of them".to_owned(),
    };
    say::result(&lines.join("\n"));
    say::note(&how);
}
