//! When a tool that declares itself destructive needs approval.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Policy;
use crate::{Origin, ToolCall, ToolDefinition};

/// What happens when a model calls a tool that declares `destructiveHint: true`. Ordered from the
/// most to the least permissive.
///
/// A missing hint doesn't count: by MCP's defaults nearly every tool would be destructive, and
/// people who are asked about everything soon approve everything.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DestructivePolicy {
    /// The call runs.
    Allow,
    /// A person is asked; if nobody can be asked, the call is denied.
    #[default]
    Ask,
    /// The call is denied.
    Deny,
}

/// Callers, besides our own models, to which [`Policy::destructive`] can also apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "A kind of caller")]
#[non_exhaustive]
pub enum DestructivePolicyCaller {
    /// MCP clients, which ask their own users.
    Mcp,
    /// Callers of the HTTP API.
    Http,
    /// Sentences that are understood without a model.
    Sentences,
}

impl Policy {
    pub(super) fn destructive_rule(
        &self,
        tool: &ToolDefinition,
        call: &ToolCall,
    ) -> DestructivePolicy {
        if tool.annotations().destructive != Some(true) {
            return DestructivePolicy::Allow;
        }
        let extends_to = |caller| self.destructive_from.contains(&caller);
        let applies = match call.origin {
            Origin::Chat | Origin::Voice if call.user_initiated => {
                extends_to(DestructivePolicyCaller::Sentences)
            }
            Origin::Chat | Origin::Voice => true,
            Origin::Mcp => extends_to(DestructivePolicyCaller::Mcp),
            Origin::Http => extends_to(DestructivePolicyCaller::Http),
            // The person who typed the call, or wrote the program, has decided already.
            Origin::CommandLine | Origin::Library | Origin::Worker => false,
        };
        match applies {
            true => self.destructive,
            false => DestructivePolicy::Allow,
        }
    }
}
