//! When a tool that says it is destructive waits for a person.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Policy;
use crate::{Origin, ToolCall, ToolDefinition};

/// What happens when a model calls a tool whose server says `destructiveHint: true`. Only that
/// word counts: by MCP's defaults nearly every tool would be destructive, and who is asked about
/// everything soon says yes to everything. Ordered from the most to the least permissive.
///
/// ```
/// use toolgate_core::{Destructive, Policy};
///
/// assert_eq!(Policy::default().destructive, Destructive::Ask);
/// assert!(Destructive::Allow < Destructive::Ask && Destructive::Ask < Destructive::Deny);
/// ```
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Destructive {
    /// It runs.
    Allow,
    /// A person is asked; where nobody is there, it is denied.
    #[default]
    Ask,
    /// It is denied.
    Deny,
}

/// Callers beside our own models that [`Policy::destructive`] may be extended to.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{DestructiveCaller, Policy};
///
/// let policy: Policy = serde_json::from_value(json!({ "destructiveFrom": ["mcp"] })).unwrap();
/// assert_eq!(policy.destructive_from, [DestructiveCaller::Mcp]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "A kind of caller")]
#[non_exhaustive]
pub enum DestructiveCaller {
    /// MCP clients, which ask their own users.
    Mcp,
    /// Callers of the HTTP API.
    Http,
    /// Sentences that are understood without a model.
    Sentences,
}

impl Policy {
    /// What this call has to expect because its tool says that it is destructive.
    pub(super) fn destructive_rule(&self, tool: &ToolDefinition, call: &ToolCall) -> Destructive {
        if tool.annotations().destructive != Some(true) {
            return Destructive::Allow;
        }
        let extends_to = |caller| self.destructive_from.contains(&caller);
        let is_meant = match call.origin {
            Origin::Chat | Origin::Voice if call.user_initiated => {
                extends_to(DestructiveCaller::Sentences)
            }
            Origin::Chat | Origin::Voice => true,
            Origin::Mcp => extends_to(DestructiveCaller::Mcp),
            Origin::Http => extends_to(DestructiveCaller::Http),
            // Whoever types a call, or writes a program, has decided on it.
            Origin::CommandLine | Origin::Library | Origin::Worker => false,
        };
        match is_meant {
            true => self.destructive,
            false => Destructive::Allow,
        }
    }
}
