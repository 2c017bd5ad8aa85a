//! The tools that a question would go out with: a model does not see the others.

use toolgate_core::escape;
use toolgate_models::{Conversation, LeftOut, Offer, Toolbox};

use super::{Finding, Report, detail};

/// How many tools there are, and what becomes of them on the way to a model.
struct Count {
    all: usize,
    /// Those that the policy lets nobody see.
    hidden: usize,
    /// Those that can not be put into the provider's form.
    left_out: usize,
    offered: usize,
    /// What keeps the others away, where all would be too many.
    why: Option<String>,
}

impl Report {
    pub(super) fn on_offer(&mut self, question: &Conversation, toolbox: &Toolbox, offer: &Offer) {
        for name in question.unknown_pins() {
            let text = format!(
                "model.pinnedTools: no tool is called '{}' here",
                escape(&name)
            );
            self.add("model tools", &Finding::Warning(text));
        }
        let left_out = offer.catalog().left_out();
        for LeftOut { name, reason } in left_out {
            let (name, reason) = (escape(name), escape(reason));
            let text = format!("it can not be offered the tool '{name}': {reason}");
            self.add("model tools", &Finding::Warning(text));
        }
        let all = toolbox.executor().manager().tools().len();
        let (finding, todo) = found(&Count {
            all,
            hidden: all.saturating_sub(toolbox.current().tools().len()),
            left_out: left_out.len(),
            offered: offer.len(),
            why: question.why_not_all(offer),
        });
        self.add("model tools", &finding);
        detail("do", todo.map(str::to_owned).as_slice());
    }
}

/// How many go out, which setting says so, and what changes it.
fn found(count: &Count) -> (Finding, Option<&'static str>) {
    const PINNED: &str = "name those that it must always have in \"pinnedTools\"";
    if count.offered == 0 {
        let (reason, todo) = none(count);
        let text = format!("it is offered no tool: {reason}");
        return (Finding::Warning(text), Some(todo));
    }
    let mut text = format!(
        "it is offered {} of {} tools with each question",
        count.offered, count.all
    );
    if let Some(why) = &count.why {
        text.push_str(&format!(", those that suit it best: {why}"));
    }
    if count.hidden > 0 {
        text.push_str(&format!("; the policy hides {}", count.hidden));
    }
    if count.left_out > 0 {
        text.push_str(&format!("; {} can not be offered", count.left_out));
    }
    (Finding::Good(text), count.why.as_ref().map(|_| PINNED))
}

/// Why there is none at all, and what to do.
fn none(count: &Count) -> (String, &'static str) {
    if let Some(why) = &count.why {
        return (
            why.clone(),
            "set \"maxToolTokens\" or \"contextTokens\" larger, or name the tools that it needs in \"pinnedTools\"",
        );
    }
    match count.left_out {
        0 => (
            format!("the policy hides all {}", count.all),
            "correct policy.allow and policy.deny so that they leave some; the tools of a server are there only while it runs",
        ),
        these => (
            format!(
                "the policy hides {}, and the other {these} can not be offered",
                count.hidden
            ),
            "change the parameters of those named above, or let it see others: policy.allow, policy.deny",
        ),
    }
}
