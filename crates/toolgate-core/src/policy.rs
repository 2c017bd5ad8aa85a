//! [`Policy`]: which tools may be called, and which need approval.

mod destructive;
mod flow;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ApprovalReason, ToolCall, ToolDefinition, ToolPattern};

pub use destructive::{DestructivePolicy, DestructivePolicyCaller};
pub(crate) use flow::CallFlow;
pub use flow::{FlowPolicy, FlowState};

/// Which tools may be called, and which need a person's approval.
///
/// It is enforced when a call is executed, even if a listing showed the tool before. If several
/// servers use a name, `allow` applies only to the tool that is listed under it, `deny` and `ask`
/// to all of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(
    description = "Which tools exist, and which wait for your approval; a pattern is a name or server/name, * stands for anything"
)]
#[non_exhaustive]
pub struct Policy {
    /// Only these tools exist.
    #[schemars(with = "Vec<String>")]
    pub allow: Vec<ToolPattern>,
    /// These don't exist, even if allowed.
    #[schemars(with = "Vec<String>")]
    pub deny: Vec<ToolPattern>,
    /// These wait for a person's approval.
    #[schemars(with = "Vec<String>")]
    pub ask: Vec<ToolPattern>,
    /// Whether a model may run a tool that declares itself destructive.
    pub destructive: DestructivePolicy,
    /// Which other callers that applies to.
    #[serde(rename = "destructiveFrom")]
    pub destructive_from: Vec<DestructivePolicyCaller>,
    /// Asks before private data can go out once untrusted text has come in.
    pub flow: FlowPolicy,
    // The allow lists of policies that narrow this one. All of them must allow a tool.
    #[serde(skip)]
    #[schemars(skip)]
    also_allowed_by: Vec<Vec<ToolPattern>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallPermission {
    Granted,
    Ask(ApprovalReason),
    Denied,
}

/// Whether a [`Policy`] allows a tool, requires approval for it, or hides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyDecision {
    Allow,
    /// A person has to approve each call.
    Ask,
    /// The tool is neither listed nor found.
    Hide,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allow: vec![ToolPattern::new("*")],
            deny: Vec::new(),
            ask: Vec::new(),
            destructive: DestructivePolicy::default(),
            destructive_from: Vec::new(),
            flow: FlowPolicy::default(),
            also_allowed_by: Vec::new(),
        }
    }
}

impl Policy {
    /// Combines two policies: both must allow a tool, and it is denied or asked about
    /// if either says so.
    #[must_use]
    pub fn narrowed_by(mut self, other: Self) -> Self {
        // Destructured completely, so that a field added later can't be forgotten here.
        let Self {
            allow,
            deny,
            ask,
            destructive,
            destructive_from,
            flow,
            also_allowed_by,
        } = other;
        if allow != Self::default().allow {
            self.also_allowed_by.push(allow);
        }
        self.also_allowed_by.extend(also_allowed_by);
        self.deny.extend(deny);
        self.ask.extend(ask);
        self.destructive = self.destructive.max(destructive);
        self.destructive_from.extend(destructive_from);
        self.flow.extend(flow);
        self
    }

    /// True if every tool that isn't denied is allowed.
    pub fn allows_all(&self) -> bool {
        self.allow.contains(&ToolPattern::new("*")) && self.also_allowed_by.is_empty()
    }

    /// Decides on a tool by its name alone; [`destructive`](Self::destructive) and
    /// [`flow`](Self::flow) also depend on the call.
    pub fn decide(&self, tool: &ToolDefinition) -> PolicyDecision {
        let matches =
            |patterns: &[ToolPattern]| patterns.iter().any(|pattern| pattern.matches(tool));
        let grants =
            |patterns: &Vec<ToolPattern>| patterns.iter().any(|pattern| pattern.grants(tool));
        let is_allowed = grants(&self.allow) && self.also_allowed_by.iter().all(grants);
        if !is_allowed || matches(&self.deny) {
            PolicyDecision::Hide
        } else if matches(&self.ask) {
            PolicyDecision::Ask
        } else {
            PolicyDecision::Allow
        }
    }

    /// Decides on a call to a visible tool. If there are several reasons to ask, the most
    /// important one is returned.
    pub(crate) fn permission_for(&self, tool: &ToolDefinition, call: &ToolCall) -> CallPermission {
        let is_flow = || !call.user_initiated && self.flow.needs_approval(tool, call.flow.as_ref());
        let is_listed = || self.ask.iter().any(|pattern| pattern.matches(tool));
        match self.destructive_rule(tool, call) {
            DestructivePolicy::Deny => CallPermission::Denied,
            _ if is_flow() => CallPermission::Ask(ApprovalReason::Flow),
            _ if is_listed() => CallPermission::Ask(ApprovalReason::Policy),
            DestructivePolicy::Ask => CallPermission::Ask(ApprovalReason::Destructive),
            DestructivePolicy::Allow => CallPermission::Granted,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ToolSource;

    fn tool(source: ToolSource, name: &str, original: &str) -> ToolDefinition {
        ToolDefinition::builder(name, "…", json!({ "type": "object" }))
            .source(source)
            .original_name(original)
            .build()
            .unwrap()
    }

    #[test]
    fn deny_beats_allow_and_ask_comes_last() {
        let list = |names: &[&str]| {
            names
                .iter()
                .map(|name| ToolPattern::new(name))
                .collect::<Vec<_>>()
        };
        let echo = tool(ToolSource::Builtin, "echo", "echo");
        for (allow, deny, ask, expected) in [
            (&["*"][..], &[][..], &[][..], PolicyDecision::Allow),
            (&["*"], &["echo"], &["echo"], PolicyDecision::Hide),
            (&["*"], &[], &["e*"], PolicyDecision::Ask),
            (&["search"], &[], &[], PolicyDecision::Hide),
            (&[], &[], &[], PolicyDecision::Hide),
        ] {
            let policy = Policy {
                allow: list(allow),
                deny: list(deny),
                ask: list(ask),
                ..Policy::default()
            };
            assert_eq!(policy.decide(&echo), expected);
        }
    }

    // Two servers have a tool of the same name: the second is listed with its
    // server's name in front.
    #[test]
    fn a_bare_name_allows_one_tool_but_denies_all_of_that_name() {
        let first = tool(ToolSource::Mcp("a".to_owned()), "delete_all", "delete_all");
        let second = tool(
            ToolSource::Mcp("b".to_owned()),
            "b__delete_all",
            "delete_all",
        );
        let policy = |allow: &str, deny: &[&str], ask: &[&str]| Policy {
            allow: vec![ToolPattern::new(allow)],
            deny: deny.iter().map(|text| ToolPattern::new(text)).collect(),
            ask: ask.iter().map(|text| ToolPattern::new(text)).collect(),
            ..Policy::default()
        };
        use PolicyDecision::{Allow, Ask, Hide};
        for (policy, expected) in [
            (policy("delete_all", &[], &[]), [Allow, Hide]),
            (policy("b__delete_all", &[], &[]), [Hide, Allow]),
            (policy("b__*", &[], &[]), [Hide, Allow]),
            (policy("a__*", &[], &[]), [Allow, Hide]),
            (policy("a/*", &[], &[]), [Allow, Hide]),
            (policy("*", &["delete_all"], &[]), [Hide, Hide]),
            (policy("*", &["b__delete_all"], &[]), [Allow, Hide]),
            (policy("*", &["a__delete_all"], &[]), [Hide, Allow]),
            (policy("*", &["b__*"], &[]), [Allow, Hide]),
            (policy("*", &[], &["delete_*"]), [Ask, Ask]),
            (policy("*", &[], &["b__*"]), [Allow, Ask]),
        ] {
            let found = [&first, &second].map(|tool| policy.decide(tool));
            assert_eq!(found, expected, "{policy:?}");
        }
    }

    #[test]
    fn policies_only_narrow_each_other() {
        use PolicyDecision::{Allow, Ask, Hide};
        let echo = tool(ToolSource::Builtin, "echo", "echo");
        let policies: Vec<(Policy, PolicyDecision)> = [
            (json!({}), Allow),
            (json!({ "allow": ["echo"] }), Allow),
            (json!({ "ask": ["e*"] }), Ask),
            (json!({ "allow": ["search"] }), Hide),
            (json!({ "allow": [] }), Hide),
            (json!({ "deny": ["echo"] }), Hide),
        ]
        .into_iter()
        .map(|(value, decision)| (serde_json::from_value(value).unwrap(), decision))
        .collect();
        let strictness =
            |decision: PolicyDecision| [Allow, Ask, Hide].iter().position(|one| *one == decision);
        for (one, by_one) in &policies {
            for (other, by_other) in &policies {
                let both = one.clone().narrowed_by(other.clone());
                let stricter = strictness(*by_one).max(strictness(*by_other));
                assert_eq!(
                    strictness(both.decide(&echo)),
                    stricter,
                    "{one:?} {other:?}"
                );
                // A third policy still sees every rule of the first two.
                let three = policies[0].0.clone().narrowed_by(both);
                assert_eq!(
                    strictness(three.decide(&echo)),
                    stricter,
                    "{one:?} {other:?}"
                );
            }
        }
    }
}
