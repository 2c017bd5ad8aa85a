//! Checks which tools a model gets with a question.

use toolgate_core::text::escape;
use toolgate_models::{Conversation, ExcludedTool, OfferedTools, Toolbox};

use super::DoctorFinding::{Good, Warning};
use super::{DoctorFinding, DoctorReport, detail};

const PIN_FIX: &str = "list the tools that it must always have in \"pinnedTools\"";

struct ToolCounts {
    all: usize,
    hidden: usize,
    excluded: usize,
    offered: usize,
    /// Why the model doesn't get all tools that it may use, if there are too many.
    omission_reason: Option<String>,
}

impl DoctorReport {
    pub(super) fn check_model_tools(
        &mut self,
        conversation: &Conversation,
        toolbox: &Toolbox,
        offer: &OfferedTools,
    ) {
        for name in conversation.unknown_pinned_tools() {
            let name = escape(&name);
            let text = format!("model.pinnedTools: there is no tool named '{name}'");
            self.add("model tools", Warning(text));
        }
        let excluded = offer.catalog().excluded();
        for ExcludedTool { name, reason } in excluded {
            let (name, reason) = (escape(name), escape(reason));
            let text = format!("tool '{name}' can't be offered to the model: {reason}");
            self.add("model tools", Warning(text));
        }
        let all = toolbox.executor().manager().tools().len();
        let (finding, fix) = count_finding(&ToolCounts {
            all,
            hidden: all.saturating_sub(toolbox.current().tools().len()),
            excluded: excluded.len(),
            offered: offer.len(),
            omission_reason: conversation.explain_omitted_tools(offer),
        });
        self.add("model tools", finding);
        detail("fix", fix.map(str::to_owned).as_slice());
    }
}

fn count_finding(count: &ToolCounts) -> (DoctorFinding, Option<&'static str>) {
    if count.offered == 0 {
        let (reason, fix) = no_tools_reason(count);
        let text = format!("the model gets no tools: {reason}");
        return (Warning(text), Some(fix));
    }
    let mut text = format!(
        "the model gets {} of {} tools with each question",
        count.offered, count.all
    );
    if let Some(reason) = &count.omission_reason {
        text.push_str(&format!(", chosen by relevance ({reason})"));
    }
    if count.hidden > 0 {
        text.push_str(&format!("; the policy hides {}", count.hidden));
    }
    if count.excluded > 0 {
        text.push_str(&format!("; {} can't be offered", count.excluded));
    }
    (Good(text), count.omission_reason.as_ref().map(|_| PIN_FIX))
}

fn no_tools_reason(count: &ToolCounts) -> (String, &'static str) {
    if let Some(reason) = &count.omission_reason {
        return (
            reason.clone(),
            "raise \"maxToolTokens\" or \"contextTokens\", or list the tools that it needs in \"pinnedTools\"",
        );
    }
    match count.excluded {
        0 if count.all == 0 => (
            "no tools are configured or running".to_owned(),
            "start a server or define a tool",
        ),
        0 => (
            format!("the policy hides all {}", count.all),
            "change policy.allow and policy.deny so that some remain",
        ),
        excluded => (
            format!(
                "the policy hides {}, and the other {excluded} can't be offered",
                count.hidden
            ),
            "change the parameters of the tools named above, or allow others with policy.allow and policy.deny",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_not_blamed_if_there_are_no_tools_at_all() {
        let none = ToolCounts {
            all: 0,
            hidden: 0,
            excluded: 0,
            offered: 0,
            omission_reason: None,
        };
        let (reason, fix) = no_tools_reason(&none);
        assert_eq!(reason, "no tools are configured or running");
        assert_eq!(fix, "start a server or define a tool");
        let (reason, _) = no_tools_reason(&ToolCounts {
            all: 6,
            hidden: 6,
            ..none
        });
        assert_eq!(reason, "the policy hides all 6");
    }
}
