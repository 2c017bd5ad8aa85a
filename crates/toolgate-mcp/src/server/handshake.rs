//! Tells clients who serves them and what is offered: `initialize` and `server/discover`.

use serde::Serialize;
use serde_json::{Map, Value, json};
use toolgate_core::text::escape;
use toolgate_core::{ContentMethod, ContentSet, ContentSource, ToolSource};

use super::client_message::InitializeParams;
use super::content_list::join_instructions;
use super::methods::COMPLETE;
use super::service::McpService;
use super::tasks::EXTENSION;
use crate::era::{LEGACY, LEGACY_REVISIONS, MODERN, REVISIONS};
use crate::extensions::SKILLS;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeResult {
    pub(super) protocol_version: &'static str,
    capabilities: Value,
    server_info: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

impl InitializeParams {
    pub(super) fn agreed_revision(&self) -> &'static str {
        let mut known = LEGACY_REVISIONS.into_iter();
        let requested = known.find(|known| *known == self.protocol_version);
        requested.unwrap_or(LEGACY)
    }
}

impl McpService {
    /// Answers in the requested revision if it is a known one with a handshake, otherwise in the
    /// newest one with a handshake.
    pub(super) fn initialize(&self, params: &InitializeParams) -> InitializeResult {
        let protocol_version = params.agreed_revision();
        let client = escape(&params.client_info.name);
        let version = escape(&params.client_info.version);
        tracing::info!(%client, %version, protocol = %protocol_version, "an MCP client is connected");
        InitializeResult {
            protocol_version,
            capabilities: self.capabilities(protocol_version),
            server_info: json!({ "name": self.options.name, "version": self.options.version }),
            instructions: self.instructions(),
        }
    }

    pub(super) fn discover(&self) -> Value {
        let mut result = json!({
            "resultType": COMPLETE,
            "supportedVersions": REVISIONS,
            "capabilities": self.capabilities(MODERN),
        });
        if let Some(instructions) = self.instructions() {
            result["instructions"] = json!(instructions);
        }
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
        result["_meta"] = json!(self.result_meta);
        result
    }

    /// Our own instructions, and those of each server of which the client sees something.
    fn instructions(&self) -> Option<String> {
        let content = self.executor.manager().content();
        let visible = self.visible_sources(&content);
        join_instructions(self.options.instructions.as_deref(), &content, |owner| {
            visible.contains(&owner.source)
        })
    }

    /// The sources of which the client sees a tool or content.
    fn visible_sources(&self, content: &ContentSet) -> Vec<ToolSource> {
        let (rules, tools) = (self.executor.rules(), self.executor.manager().tools());
        let mut visible: Vec<ToolSource> = Vec::new();
        let of_tools = tools.iter().map(|tool| tool.definition());
        let of_content = content.sources().iter().flat_map(|owner| {
            let access = &owner.content.access;
            let used = [
                &access.read_resource,
                &access.get_prompt,
                &access.call_extension,
            ];
            used.into_iter().flatten().map(|tool| tool.definition())
        });
        for tool in of_tools.chain(of_content) {
            if !visible.contains(tool.source()) && rules.offers(tool, &self.scope) {
                visible.push(tool.source().clone());
            }
        }
        visible
    }

    /// What visible servers declare, and what we take part in ourselves.
    fn extensions(&self) -> Map<String, Value> {
        let content = self.executor.manager().content();
        let visible = self.visible_sources(&content);
        let mut declared = content.declared_extensions(|owner| visible.contains(&owner.source));
        if let Some(settings) = self.skill_settings(&content) {
            declared.insert(SKILLS.to_owned(), settings);
        }
        declared
    }

    /// `None` if this client can't see skills, now or later.
    fn skill_settings(&self, content: &ContentSet) -> Option<Value> {
        let rules = self.executor.rules();
        let offers = |owner: &&ContentSource, method| owner.is_offered(method, &rules, &self.scope);
        let with_skills: Vec<&ContentSource> = content
            .sources()
            .iter()
            .filter(|owner| offers(owner, ContentMethod::GetSkill))
            .collect();
        if with_skills.is_empty() && !self.options.expects_content {
            return None;
        }
        let lists_folders = |owner: &&ContentSource| offers(owner, ContentMethod::ReadDirectory);
        // A server that declares it has to list the folders of every skill.
        Some(
            match !with_skills.is_empty() && with_skills.iter().all(lists_folders) {
                true => json!({ "directoryRead": true }),
                false => json!({}),
            },
        )
    }

    /// True if resources and prompts exist for clients, now or later.
    pub(super) fn offers_content(&self) -> bool {
        self.options.expects_content || !self.executor.manager().content().sources().is_empty()
    }

    fn capabilities(&self, revision: &str) -> Value {
        let mut capabilities = json!({ "tools": { "listChanged": true }, "logging": {} });
        if self.offers_content() {
            capabilities["resources"] = json!({ "subscribe": true, "listChanged": true });
            capabilities["prompts"] = json!({ "listChanged": true });
            capabilities["completions"] = json!({});
        }
        let mut extensions = self.extensions();
        match revision {
            MODERN => drop(extensions.insert(EXTENSION.to_owned(), json!({}))),
            // Without `list`: only the hashes of tasks' ids are kept, and without tokens callers
            // can't be told apart.
            LEGACY => {
                let calls = json!({ "tools": { "call": {} } });
                capabilities["tasks"] = json!({ "cancel": {}, "requests": calls });
            }
            _ => {}
        }
        if !extensions.is_empty() {
            capabilities["extensions"] = extensions.into();
        }
        capabilities
    }
}
