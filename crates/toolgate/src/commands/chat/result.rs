//! `/result`: shows results that were cut for the model.

use anyhow::bail;
use toolgate_core::ToolOutcome;
use toolgate_core::text::escape;

use super::ChatLoop;
use crate::clean::clean;
use crate::output;

impl ChatLoop<'_> {
    pub(super) fn show_result(&self, wanted: &str) -> anyhow::Result<()> {
        let kept: Vec<_> = self.conversation.full_results().collect();
        if wanted.is_empty() {
            list(&kept);
            return Ok(());
        }
        let shown = escape(wanted);
        match find_results(&kept, wanted)[..] {
            [outcome] => output::print_result(clean(&outcome.to_model_text()).trim_end()),
            [] => bail!("no kept result matches '{shown}'; /result lists them"),
            _ => bail!("several kept results match '{shown}'; /result lists their ids"),
        }
        Ok(())
    }
}

/// Finds results by the tool's name, or by the beginning or end of an id: ids from the same moment
/// differ only at their end.
fn find_results<'a>(kept: &[&'a ToolOutcome], wanted: &str) -> Vec<&'a ToolOutcome> {
    let is_match = |outcome: &&ToolOutcome| {
        let id = outcome.call_id.to_string();
        outcome.tool_name == wanted || id.starts_with(wanted) || id.ends_with(wanted)
    };
    kept.iter().copied().filter(is_match).collect()
}

fn list(kept: &[&ToolOutcome]) {
    let lines: Vec<String> = kept
        .iter()
        .map(|outcome| format!("{}\t{}", outcome.call_id, escape(&outcome.tool_name)))
        .collect();
    let how = match kept {
        [] => return output::print_note("no result has been too large for the model so far"),
        [only] => format!("/result {} shows it", escape(&only.tool_name)),
        _ => "'/result ID' shows one of them; the beginning or the end of its id is enough"
            .to_owned(),
    };
    output::print_result(&lines.join("\n"));
    output::print_note(&how);
}
