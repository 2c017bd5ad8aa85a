//! Checks which tools a model is offered with a question.

use toolgate_core::text::escape;
use toolgate_models::{Conversation, ExcludedTool, OfferedTools, Toolbox};

use super::DoctorFinding::{Good, Warning};
use super::{DoctorFinding, DoctorReport, detail};

struct ToolCounts {
    all: usize,
    hidden: usize,
    left_out: usize,
    offered: usize,
    /// Why the others aren't offered, if all would be too many.
    why: Option<String>,
}

impl DoctorReport {
    pub(super) fn check_model_tools(
        &mut self,
        question: &Conversation,
        toolbox: &Toolbox,
        offer: &OfferedTools,
    ) {
        for name in question.unknown_pinned_tools() {
            let text = format!(
                "model.pinnedTools: no tool is called '{}' here",
                escape(&name)
            );
            self.add("model tools", Warning(text));
        }
        let left_out = offer.catalog().excluded();
        for ExcludedTool { name, reason } in left_out {
            let (name, reason) = (escape(name), escape(reason));
            let text = format!("it can't be offered the tool '{name}': {reason}");
            self.add("model tools", Warning(text));
        }
        let all = toolbox.executor().manager().tools().len();
        let (finding, fix) = count_finding(&ToolCounts {
            all,
            hidden: all.saturating_sub(toolbox.current().tools().len()),
            left_out: left_out.len(),
            offered: offer.len(),
            why: question.explain_omitted_tools(offer),
        });
        self.add("model tools", finding);
        detail("fix", fix.map(str::to_owned).as_slice());
    }
}

fn count_finding(count: &ToolCounts) -> (DoctorFinding, Option<&'static str>) {
    const PINNED: &str = "list those that it must always have in \"pinnedTools\"";
    if count.offered == 0 {
        let (reason, fix) = no_tool_reason(count);
        let text = format!("it is offered no tool: {reason}");
        return (Warning(text), Some(fix));
    }
    let mut text = format!(
        "it is offered {} of {} tools with each question",
        count.offered, count.all
    );
    if let Some(why) = &count.why {
        text.push_str(&format!(", the ones that fit it best: {why}"));
    }
    if count.hidden > 0 {
        text.push_str(&format!("; the policy hides {}", count.hidden));
    }
    if count.left_out > 0 {
        text.push_str(&format!("; {} can't be offered", count.left_out));
    }
    (Good(text), count.why.as_ref().map(|_| PINNED))
}

fn no_tool_reason(count: &ToolCounts) -> (String, &'static str) {
    if let Some(why) = &count.why {
        return (
            why.clone(),
            "raise \"maxToolTokens\" or \"contextTokens\", or list the tools that it needs in \"pinnedTools\"",
        );
    }
    match count.left_out {
        0 => (
            format!("the policy hides all {}", count.all),
            "change policy.allow and policy.deny so that some remain; a server's tools exist only while it runs",
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
