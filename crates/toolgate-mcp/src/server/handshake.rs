//! Tells clients who serves them and what is offered: `initialize` and `server/discover`.

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_core::{ContentSource, ToolSource, escape};

use super::client_message::InitializeParams;
use super::content_list::join_instructions;
use super::methods::COMPLETE;
use super::service::McpService;
use super::tasks::EXTENSION;
use crate::era::{LEGACY, LEGACY_REVISIONS, MODERN, REVISIONS};

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
        let manager = self.executor.manager();
        let (rules, tools) = (self.executor.rules(), manager.tools());
        let mut visible: Vec<&ToolSource> = Vec::new();
        for tool in tools.iter().map(|tool| tool.definition()) {
            if !visible.contains(&tool.source()) && rules.offers(tool, &self.scope) {
                visible.push(tool.source());
            }
        }
        let is_visible = |owner: &ContentSource| {
            let access = &owner.content.access;
            let mut used = [&access.read_resource, &access.get_prompt]
                .into_iter()
                .flatten();
            visible.contains(&&owner.source)
                || used.any(|tool| rules.offers(tool.definition(), &self.scope))
        };
        join_instructions(
            self.options.instructions.as_deref(),
            &manager.content(),
            is_visible,
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
        match revision {
            MODERN => capabilities["extensions"] = json!({ EXTENSION: {} }),
            // Without `list`: only the hashes of tasks' ids are kept, and without tokens callers
            // can't be told apart.
            LEGACY => {
                let calls = json!({ "tools": { "call": {} } });
                capabilities["tasks"] = json!({ "cancel": {}, "requests": calls });
            }
            _ => {}
        }
        capabilities
    }
}
