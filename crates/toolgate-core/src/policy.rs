//! Who may use what.

mod destructive;
mod flow;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ApprovalReason, Pattern, ToolCall, ToolDefinition};

pub use destructive::{Destructive, DestructiveCaller};
pub(crate) use flow::CallFlow;
pub use flow::{FlowPolicy, FlowState};

/// Which tools may be called, and which only with a person's approval. It is enforced when a call is executed, whatever a
/// listing showed. A name that stands for several tools grants the one that is listed under it, and withholds all of them.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Decision, Policy, ToolDefinition};
///
/// let policy: Policy = serde_json::from_value(json!({ "ask": ["*_lock"], "deny": ["reset"] })).unwrap();
/// let unlock = ToolDefinition::builder("control_lock", "Locks", json!({ "type": "object" })).build()?;
/// assert_eq!(policy.decide(&unlock), Decision::Ask);
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(
    description = "Which tools exist, and which wait for your approval; a pattern is a name or server/name, * stands for anything"
)]
#[non_exhaustive]
pub struct Policy {
    /// Only these exist.
    #[schemars(with = "Vec<String>")]
    pub allow: Vec<Pattern>,
    /// These do not, though allowed.
    #[schemars(with = "Vec<String>")]
    pub deny: Vec<Pattern>,
    /// These wait for a person's approval.
    #[schemars(with = "Vec<String>")]
    pub ask: Vec<Pattern>,
    /// Whether a model may run a tool that says of itself that it is destructive.
    pub destructive: Destructive,
    /// Who else that holds for.
    #[serde(rename = "destructiveFrom")]
    pub destructive_from: Vec<DestructiveCaller>,
    /// Keeps private data from going out after a stranger's words came in.
    pub flow: FlowPolicy,
    /// The allow lists of policies that narrow this one: each has to grant a tool as well.
    #[serde(skip)]
    #[schemars(skip)]
    also_allowed_by: Vec<Vec<Pattern>>,
}

/// What a policy says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    Granted,
    Ask(ApprovalReason),
    Denied,
}

/// What a policy says of a tool.
///
/// ```
/// use toolgate_core::Decision;
///
/// fn mark(decision: Decision) -> &'static str {
///     match decision {
///         Decision::Allow => "",
///         Decision::Ask => "asks first",
///         Decision::Hide => "hidden",
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Go ahead.
    Allow,
    /// Ask a person first.
    Ask,
    /// There is no such tool for this caller.
    Hide,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allow: vec![Pattern::new("*")],
            deny: Vec::new(),
            ask: Vec::new(),
            destructive: Destructive::default(),
            destructive_from: Vec::new(),
            flow: FlowPolicy::default(),
            also_allowed_by: Vec::new(),
        }
    }
}

impl Policy {
    /// Both policies at once: a tool needs to be allowed by each, and is denied or asked about if
    /// either says so.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolgate_core::{Decision, Policy, ToolDefinition};
    ///
    /// let policy = |value| serde_json::from_value::<Policy>(value).unwrap();
    /// let both = policy(json!({ "allow": ["echo", "search"] })).narrowed_by(policy(json!({ "deny": ["search"] })));
    /// let search = ToolDefinition::builder("search", "Searches", json!({ "type": "object" })).build()?;
    /// assert_eq!(both.decide(&search), Decision::Hide);
    /// # Ok::<_, toolgate_core::DefinitionError>(())
    /// ```
    #[must_use]
    pub fn narrowed_by(mut self, other: Self) -> Self {
        // Taken apart completely, so that no rule that is added later can be forgotten here.
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

    /// True if every tool is allowed that isn't denied.
    pub fn allows_all(&self) -> bool {
        self.allow.contains(&Pattern::new("*")) && self.also_allowed_by.is_empty()
    }

    /// Decides for one tool.
    pub fn decide(&self, tool: &ToolDefinition) -> Decision {
        let matches = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(tool));
        let grants = |patterns: &Vec<Pattern>| patterns.iter().any(|pattern| pattern.grants(tool));
        match () {
            () if !grants(&self.allow) || !self.also_allowed_by.iter().all(grants) => {
                Decision::Hide
            }
            () if matches(&self.deny) => Decision::Hide,
            () if matches(&self.ask) => Decision::Ask,
            () => Decision::Allow,
        }
    }

    /// Decides for one call of a tool that it does not hide. The reason is the one a person should
    /// know first.
    pub(crate) fn permit(&self, tool: &ToolDefinition, call: &ToolCall) -> Permission {
        let is_flow = || !call.user_initiated && self.flow.asks(tool, call.flow.as_ref());
        let is_listed = || self.ask.iter().any(|pattern| pattern.matches(tool));
        match self.destructive_rule(tool, call) {
            Destructive::Deny => Permission::Denied,
            _ if is_flow() => Permission::Ask(ApprovalReason::Flow),
            _ if is_listed() => Permission::Ask(ApprovalReason::Policy),
            Destructive::Ask => Permission::Ask(ApprovalReason::Destructive),
            Destructive::Allow => Permission::Granted,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Source;

    fn tool(source: Source, name: &str, original: &str) -> ToolDefinition {
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
                .map(|name| Pattern::new(name))
                .collect::<Vec<_>>()
        };
        let echo = tool(Source::Builtin, "echo", "echo");
        for (allow, deny, ask, expected) in [
            (&["*"][..], &[][..], &[][..], Decision::Allow),
            (&["*"], &["echo"], &["echo"], Decision::Hide),
            (&["*"], &[], &["e*"], Decision::Ask),
            (&["search"], &[], &[], Decision::Hide),
            (&[], &[], &[], Decision::Hide),
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

    /// Two servers have a tool of one name: the second is listed with its server's name before it.
    #[test]
    fn a_bare_name_grants_one_tool_and_withholds_all() {
        let first = tool(Source::Mcp("a".to_owned()), "delete_all", "delete_all");
        let second = tool(Source::Mcp("b".to_owned()), "b__delete_all", "delete_all");
        let policy = |allow: &str, deny: &[&str], ask: &[&str]| Policy {
            allow: vec![Pattern::new(allow)],
            deny: deny.iter().map(|text| Pattern::new(text)).collect(),
            ask: ask.iter().map(|text| Pattern::new(text)).collect(),
            ..Policy::default()
        };
        use Decision::{Allow, Ask, Hide};
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
    fn a_policy_is_only_ever_narrowed_by_another() {
        use Decision::{Allow, Ask, Hide};
        let echo = tool(Source::Builtin, "echo", "echo");
        let policies: Vec<(Policy, Decision)> = [
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
            |decision: Decision| [Allow, Ask, Hide].iter().position(|one| *one == decision);
        for (one, by_one) in &policies {
            for (other, by_other) in &policies {
                let both = one.clone().narrowed_by(other.clone());
                let stricter = strictness(*by_one).max(strictness(*by_other));
                assert_eq!(
                    strictness(both.decide(&echo)),
                    stricter,
                    "{one:?} {other:?}"
                );
                // A third one finds all that is there.
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
