//! What a server offers besides tools: lists it, and makes the tools that give access to it.

mod entry;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use toolgate_core::{
    CallContext, ContentMethod, Redactor, SourceContent, Tool, ToolDefinition, ToolError,
    ToolFuture, ToolOutput, ToolSource, ValidArguments,
};
use tracing::warn;

use super::call_result::{to_tool_error, unreadable_error};
use super::link::ServerLink;
use super::listing::list_all;
use super::server_request::{RequestOutcome, ServerRequest, unexpected_task_error};
use super::session::{ClientSession, ServerOffer, SessionError, UNANNOUNCED_TTL};
use super::tool::{hide_secrets, is_wanted};
use crate::ServerSettings;
use crate::extensions::{SKILLS, may_have_requests};
use entry::{EntryKind, checked_entry, is_skill};

const MAX_INSTRUCTIONS: usize = 64 << 10;

/// What a server listed besides tools, as the catalog keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ListedContent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<String>,
    pub(crate) capabilities: ContentCapabilities,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) templates: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) prompts: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) skills: Vec<Value>,
    /// The extensions that clients may hear of, with the server's settings.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) extensions: Map<String, Value>,
}

/// What the server says it supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ContentCapabilities {
    pub(crate) resources: bool,
    pub(crate) subscribe: bool,
    pub(crate) prompts: bool,
    pub(crate) completions: bool,
}

impl ContentCapabilities {
    pub(crate) fn from_json(capabilities: &Value) -> Self {
        Self {
            resources: capabilities["resources"].is_object(),
            subscribe: capabilities["resources"]["subscribe"] == true,
            prompts: capabilities["prompts"].is_object(),
            completions: capabilities["completions"].is_object(),
        }
    }
}

/// Lists everything besides tools. A list that fails, or doesn't come within the limit, is empty,
/// because the server's tools are of use without it.
pub(crate) async fn list_content(
    server: &str,
    session: &Arc<ClientSession>,
    redactor: &Redactor,
    limit: Option<Duration>,
) -> Result<ListedContent, SessionError> {
    let ServerOffer {
        capabilities,
        extensions,
        instructions,
        ..
    } = session.offer();
    let mut listed = ListedContent {
        instructions: instructions
            .map(|text| bounded(&redactor.redact_known(&text), MAX_INSTRUCTIONS)),
        capabilities,
        extensions: without_secrets(extensions, redactor),
        ..ListedContent::default()
    };
    let list = async |kind: EntryKind, is_offered: bool| match is_offered {
        true => list_entries(kind, server, session, redactor, limit).await,
        false => Ok(Vec::new()),
    };
    let has_skills = capabilities.resources && listed.extensions.contains_key(SKILLS);
    if has_skills {
        // Servers don't announce changes of skills.
        session.note_ttl(UNANNOUNCED_TTL);
    }
    // Side by side, so that one that hangs doesn't take the time of the others.
    (
        listed.resources,
        listed.templates,
        listed.prompts,
        listed.skills,
    ) = futures::try_join!(
        list(EntryKind::Resource, capabilities.resources),
        list(EntryKind::Template, capabilities.resources),
        list(EntryKind::Prompt, capabilities.prompts),
        list(EntryKind::Skill, has_skills),
    )?;
    Ok(listed)
}

async fn list_entries(
    kind: EntryKind,
    server: &str,
    session: &Arc<ClientSession>,
    redactor: &Redactor,
    limit: Option<Duration>,
) -> Result<Vec<Value>, SessionError> {
    let listing = list_all(server, session, kind.method(), kind.key());
    let entries = match limit {
        Some(limit) => timeout(limit, listing).await.unwrap_or_else(|_| {
            let reason = format!("no response within {} s", limit.as_secs_f64());
            Err(SessionError::Interrupted(reason.into()))
        }),
        None => listing.await,
    };
    let entries = match entries {
        Err(SessionError::Stopped(end)) => return Err(SessionError::Stopped(end)),
        Err(error) => {
            let method = kind.method();
            warn!(server, ?error, "{method} failed; continuing without them");
            Vec::new()
        }
        Ok(entries) => entries,
    };
    let checked = entries.into_iter().filter_map(|mut entry| {
        hide_secrets(&mut entry, redactor);
        checked_entry(kind, entry, server)
    });
    Ok(checked.collect())
}

fn without_secrets(extensions: Map<String, Value>, redactor: &Redactor) -> Map<String, Value> {
    let mut extensions = Value::Object(extensions);
    hide_secrets(&mut extensions, redactor);
    match extensions {
        Value::Object(extensions) => extensions,
        _ => Map::new(),
    }
}

fn bounded(text: &str, longest: usize) -> String {
    text[..text.floor_char_boundary(longest)].to_owned()
}

impl ListedContent {
    /// Hides secrets of the configuration that the server repeats.
    pub(crate) fn hide_secrets(&mut self, redactor: &Redactor) {
        if let Some(text) = &mut self.instructions {
            *text = redactor.redact_known(text).into_owned();
        }
        let lists = [
            &mut self.resources,
            &mut self.templates,
            &mut self.prompts,
            &mut self.skills,
        ];
        for entry in lists.into_iter().flatten() {
            hide_secrets(entry, redactor);
        }
        self.extensions = without_secrets(std::mem::take(&mut self.extensions), redactor);
    }

    /// What is offered of it under these settings.
    pub(crate) fn offer(self, settings: &ServerSettings, link: &ServerLink) -> SourceContent {
        let mut content = SourceContent::default();
        let tool = |method| ContentTool::wanted(method, settings, link);
        content.instructions = self.instructions;
        if self.capabilities.resources {
            content.access.read_resource = tool(ContentMethod::ReadResource);
        }
        if content.access.read_resource.is_some() {
            content.resources = self.resources;
            content.templates = self.templates;
            if self.capabilities.subscribe {
                content.access.updates = Some(Arc::clone(link.subscriptions()) as Arc<_>);
            }
            if let Some(skills) = self.extensions.get(SKILLS) {
                content.access.get_skill = tool(ContentMethod::GetSkill);
                if skills["directoryRead"] == true {
                    content.access.read_directory = tool(ContentMethod::ReadDirectory);
                }
            }
        }
        if content.access.get_skill.is_some() {
            content.skills = self.skills;
        }
        if self.capabilities.prompts {
            content.access.get_prompt = tool(ContentMethod::GetPrompt);
        }
        if content.access.get_prompt.is_some() {
            content.prompts = self.prompts;
        }
        if self.capabilities.completions {
            content.access.complete = tool(ContentMethod::Complete);
        }
        if self.extensions.keys().any(|id| may_have_requests(id)) {
            content.access.call_extension = tool(ContentMethod::CallExtension);
        }
        // Skills that can't be got are declared by nobody.
        content.extensions = self.extensions;
        content.extensions.retain(|id, _| *id != SKILLS);
        content
    }
}

/// Sends the requests for a server's content.
struct ContentTool {
    definition: ToolDefinition,
    method: ContentMethod,
    server: String,
    link: ServerLink,
}

impl ContentTool {
    /// `None` if the settings exclude it.
    fn wanted(
        method: ContentMethod,
        settings: &ServerSettings,
        link: &ServerLink,
    ) -> Option<Arc<dyn Tool>> {
        let mut definition = method.definition(ToolSource::Mcp(settings.name.clone()));
        if let Some(timeout) = settings.timeout {
            definition = definition.timeout(timeout);
        }
        // Can't fail: name and schema are ours.
        let definition = definition.build().ok()?;
        let tool = is_wanted(settings, &definition).then(|| Self {
            definition,
            method,
            server: settings.name.clone(),
            link: link.clone(),
        });
        tool.map(|tool| Arc::new(tool) as Arc<dyn Tool>)
    }

    /// Sends a notification of an extension. Nothing answers it.
    async fn notify(&self, given: &Value, context: &CallContext) -> Result<ToolOutput, ToolError> {
        let tool = context.tool_name();
        let session = self.link.session(tool).await?;
        let (method, params) = extension_request(given);
        let sent = session.notify_for_call(method.into_owned(), params, context);
        match sent.await {
            Ok(()) => Ok(ToolOutput::default()),
            Err(failure) => Err(to_tool_error(&self.server, tool, failure)),
        }
    }
}

impl Tool for ContentTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            if context.resumed_task().is_some() {
                let problem = format!("'{}' has no tasks to continue", context.tool_name());
                return Err(ToolError::failed(problem));
            }
            let given = arguments.as_value();
            if given["isNotification"] == true {
                return self.notify(given, context).await;
            }
            let name = match self.method {
                ContentMethod::ReadResource => given["uri"].as_str(),
                ContentMethod::GetPrompt => given["name"].as_str(),
                _ => None,
            };
            let (method, params) = match self.method {
                ContentMethod::CallExtension => extension_request(given),
                method => (Cow::Borrowed(method.as_str()), given),
            };
            let request = ServerRequest {
                server: &self.server,
                link: &self.link,
                method,
                name,
                params,
                headers: Vec::new(),
                is_repeatable: self.method != ContentMethod::CallExtension,
                pinned_tool: None,
                task_support: None,
            };
            let result = match request.run(context).await? {
                RequestOutcome::Complete(result) => result,
                RequestOutcome::Extension(result) => {
                    return Ok(ToolOutput::extension_result(result));
                }
                RequestOutcome::Task(_) => {
                    return Err(unexpected_task_error(context.tool_name()));
                }
            };
            match find_flaw(self.method, &result) {
                None => Ok(ToolOutput::json(result)),
                Some(flaw) => Err(unreadable_error(context.tool_name(), flaw.to_owned())),
            }
        })
    }
}

/// The method of an extension, and its parameters.
fn extension_request(given: &Value) -> (Cow<'static, str>, &Value) {
    static NOTHING: LazyLock<Value> = LazyLock::new(|| json!({}));
    let method = given["method"].as_str().unwrap_or_default().to_owned();
    let params = given.get("params").filter(|params| params.is_object());
    (Cow::Owned(method), params.unwrap_or(&NOTHING))
}

/// What clients can't work with. All else is passed on unread.
fn find_flaw(method: ContentMethod, result: &Value) -> Option<&'static str> {
    let are_objects = |list: &Value| {
        let list = list.as_array();
        list.is_some_and(|list| list.iter().all(Value::is_object))
    };
    match method {
        ContentMethod::ReadResource if !are_objects(&result["contents"]) => {
            Some("its 'contents' is not a list of objects")
        }
        ContentMethod::GetPrompt if !are_objects(&result["messages"]) => {
            Some("its 'messages' is not a list of objects")
        }
        ContentMethod::Complete if !result["completion"]["values"].is_array() => {
            Some("its 'completion' has no list of values")
        }
        ContentMethod::GetSkill if !is_skill(&result["skill"]) => {
            Some("its 'skill' is not the entry of a skill")
        }
        ContentMethod::ReadDirectory if !are_objects(&result["resources"]) => {
            Some("its 'resources' is not a list of objects")
        }
        ContentMethod::CallExtension if !result.is_object() => Some("it is not an object"),
        _ => None,
    }
}
