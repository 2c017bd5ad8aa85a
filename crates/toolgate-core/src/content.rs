//! [`SourceContent`]: what a source offers besides tools, namely resources,
//! resource templates, prompts, skills and extensions of MCP.
//!
//! Their entries are kept as JSON, exactly as the source lists them, because Toolgate only passes
//! them on. They are used through [`ContentAccess`], whose members are tools: reading a resource is
//! a call that is checked, permitted, timed and recorded like any other.

use std::any::Any;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{Annotations, DefinitionBuilder, Tool, ToolDefinition, ToolRank, ToolSource};

/// The kinds of content request: read a resource, get a prompt, complete an argument, and so on.
///
/// Policies and scopes know each by its MCP method: `files/resources/read` in a deny list hides all
/// resources of the server `files`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentMethod {
    ReadResource,
    GetPrompt,
    Complete,
    /// Gets the entry of one skill.
    GetSkill,
    ReadDirectory,
    /// Sends a request or a notification that an extension of MCP defines.
    CallExtension,
}

impl ContentMethod {
    /// Finds the method by its MCP name. Requests of extensions have names of their own.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::ReadResource,
            Self::GetPrompt,
            Self::Complete,
            Self::GetSkill,
            Self::ReadDirectory,
        ]
        .into_iter()
        .find(|method| method.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadResource => "resources/read",
            Self::GetPrompt => "prompts/get",
            Self::Complete => "completion/complete",
            Self::GetSkill => "skills/get",
            Self::ReadDirectory => "resources/directory/read",
            Self::CallExtension => "extensions/request",
        }
    }

    /// Starts the definition of the tool that does this for one source.
    pub fn definition(self, source: ToolSource) -> DefinitionBuilder {
        let (description, properties, required) = match self {
            Self::ReadResource => (
                "Reads a resource",
                json!({ "uri": { "type": "string" } }),
                json!(["uri"]),
            ),
            Self::GetPrompt => (
                "Fills in a prompt",
                json!({
                    "name": { "type": "string" },
                    "arguments": { "type": "object", "additionalProperties": { "type": "string" } },
                }),
                json!(["name"]),
            ),
            Self::Complete => (
                "Suggests values for an argument of a prompt or a resource template",
                json!({
                    "ref": { "type": "object" },
                    "argument": { "type": "object" },
                    "context": { "type": "object" },
                }),
                json!(["ref", "argument"]),
            ),
            Self::GetSkill => (
                "Gets the entry of a skill",
                json!({ "uri": { "type": "string" } }),
                json!(["uri"]),
            ),
            Self::ReadDirectory => (
                "Lists what is in a folder of resources",
                json!({ "uri": { "type": "string" }, "cursor": { "type": "string" } }),
                json!(["uri"]),
            ),
            Self::CallExtension => (
                "Sends a request or a notification that an extension of MCP defines",
                json!({
                    "method": { "type": "string" },
                    "params": { "type": "object" },
                    "isNotification": { "type": "boolean" },
                }),
                json!(["method"]),
            ),
        };
        let parameters =
            json!({ "type": "object", "properties": properties, "required": required });
        let annotations = Annotations {
            // Nobody knows what a request of an extension does.
            read_only: (self != Self::CallExtension).then_some(true),
            ..Annotations::default()
        };
        ToolDefinition::builder(self.as_str(), description, parameters)
            .source(source)
            .annotations(annotations)
    }
}

/// The resources, prompts, skills and extensions of one source, as last listed.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct SourceContent {
    /// The source's hints for models that use it.
    pub instructions: Option<String>,
    pub resources: Vec<Value>,
    pub templates: Vec<Value>,
    pub prompts: Vec<Value>,
    /// The entries that the source lists under `skills/list`.
    pub skills: Vec<Value>,
    /// The MCP extensions that the source declares to support, with its settings for each.
    pub extensions: Map<String, Value>,
    pub access: ContentAccess,
}

impl SourceContent {
    /// True if nothing can be listed, read or said.
    pub fn is_empty(&self) -> bool {
        self.instructions.is_none()
            && self.access.read_resource.is_none()
            && self.access.get_prompt.is_none()
            && self.extensions.is_empty()
    }
}

/// The tools that fetch a source's content; `None` for what the source doesn't support.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ContentAccess {
    /// Takes `{uri}` with the source's own URI. Its structured output is
    /// the result of `resources/read`.
    pub read_resource: Option<Arc<dyn Tool>>,
    /// Takes `{name, arguments}` with the source's own name of the prompt. Its structured output is
    /// the result of `prompts/get`.
    pub get_prompt: Option<Arc<dyn Tool>>,
    /// Takes the parameters of `completion/complete`. Its structured output is the result.
    pub complete: Option<Arc<dyn Tool>>,
    /// Takes `{uri}` with the source's own URI of a `SKILL.md`. Its structured output is
    /// the result of `skills/get`.
    pub get_skill: Option<Arc<dyn Tool>>,
    /// Takes the parameters of `resources/directory/read`, with the source's own URI. Its
    /// structured output is the result.
    pub read_directory: Option<Arc<dyn Tool>>,
    /// Takes `{method, params}` of any request that one of the source's extensions defines. Its
    /// structured output is the result.
    pub call_extension: Option<Arc<dyn Tool>>,
    pub updates: Option<Arc<dyn ResourceUpdates>>,
}

impl ContentAccess {
    pub fn tool(&self, method: ContentMethod) -> Option<&Arc<dyn Tool>> {
        match method {
            ContentMethod::ReadResource => self.read_resource.as_ref(),
            ContentMethod::GetPrompt => self.get_prompt.as_ref(),
            ContentMethod::Complete => self.complete.as_ref(),
            ContentMethod::GetSkill => self.get_skill.as_ref(),
            ContentMethod::ReadDirectory => self.read_directory.as_ref(),
            ContentMethod::CallExtension => self.call_extension.as_ref(),
        }
    }
}

/// Notifies subscribers when resources of a source change.
pub trait ResourceUpdates: Send + Sync {
    /// Calls `listener` after every change of one of the source's own URIs or of a sub-resource,
    /// until the returned subscription is dropped. Survives restarts of the source.
    /// The listener must not block.
    fn subscribe(&self, uri: &str, listener: UpdateListener) -> UpdateSubscription;
}

/// Called when a subscribed resource has changed.
///
/// Receives the part of the changed URI that follows the subscribed one: nothing, or the rest of
/// the path to a sub-resource. Also receives the `_meta` of the announcement.
pub type UpdateListener = Box<dyn Fn(&str, Option<&Map<String, Value>>) + Send + Sync>;

/// Ends a subscription when it is dropped.
pub type UpdateSubscription = Box<dyn Any + Send + Sync>;

/// One source's content, with its rank.
#[derive(Clone)]
pub struct ContentSource {
    pub source: ToolSource,
    pub rank: ToolRank,
    pub content: Arc<SourceContent>,
}
