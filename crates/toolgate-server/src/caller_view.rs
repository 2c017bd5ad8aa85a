//! Restricts the API to the tools, servers and calls that one caller may see.

use toolgate_core::{ContentMethod, Scope, ToolDefinition, ToolPattern, ToolSource, sanitize};
use toolgate_journal::CallSummary;
use toolgate_mcp::ServerStatus;

use crate::Gateway;
use crate::guard::Caller;

/// The gateway as seen by one caller.
#[derive(Clone)]
pub(crate) struct CallerView {
    gateway: Gateway,
    scope: Scope,
    sees_all: bool,
    // The recorded name of the only caller whose calls are visible; `None` if all calls are.
    only_caller: Option<String>,
}

impl CallerView {
    pub(crate) fn new(gateway: &Gateway, caller: &Caller) -> Self {
        Self {
            gateway: gateway.clone(),
            scope: caller.scope.clone(),
            sees_all: caller.rights.see_all,
            only_caller: (!caller.rights.see_all).then(|| {
                let name = caller.scope.caller().unwrap_or_default();
                sanitize::name(&gateway.parts.redactor, name)
            }),
        }
    }

    pub(crate) fn has_all_tools(&self) -> bool {
        self.scope.is_unrestricted()
    }

    /// True for callers who may read everything about everybody.
    pub(crate) fn sees_all(&self) -> bool {
        self.sees_all && self.has_all_tools()
    }

    /// True for callers who see no calls at all, so that nothing needs to be searched.
    pub(crate) fn sees_no_calls(&self) -> bool {
        let has_nothing = self.scope.patterns().is_some_and(<[_]>::is_empty);
        has_nothing || self.only_caller.as_deref() == Some("")
    }

    pub(crate) fn has_tool(&self, tool: &ToolDefinition) -> bool {
        let executor = self.gateway.executor();
        executor.is_visible_in_scope(tool, &self.scope)
    }

    pub(crate) fn tool_count(&self) -> usize {
        let tools = self.gateway.executor().manager().tools();
        let visible = tools.iter().filter(|tool| self.has_tool(tool.definition()));
        visible.count()
    }

    /// The only caller whose calls are visible; `None` if all calls are. An empty name stands for a
    /// caller without a name, who sees no calls.
    pub(crate) fn only_caller(&self) -> Option<&str> {
        self.only_caller.as_deref()
    }

    /// Whether calls of this caller are visible.
    pub(crate) fn sees_calls_of(&self, caller: Option<&str>) -> bool {
        let only_caller = self.only_caller.as_deref();
        only_caller.is_none_or(|name| caller == Some(name))
    }

    /// Whether a recorded call is visible. Its tool may no longer exist, or never have existed.
    pub(crate) fn has_call(&self, call: &CallSummary) -> bool {
        self.sees_calls_of(call.caller.as_deref())
            && self.has_tool_of_call(&call.tool, call.server.as_deref())
    }

    pub(crate) fn has_tool_of_call(&self, tool: &str, server: Option<&str>) -> bool {
        if self.has_all_tools() {
            return true;
        }
        let found = self.gateway.executor().find_in_scope(tool, &self.scope);
        let is_of_server = |definition: &ToolDefinition| match definition.source() {
            ToolSource::Mcp(name) => Some(name.as_str()) == server,
            _ => server.is_none(),
        };
        if let Ok(tool) = found {
            return is_of_server(tool.definition());
        }
        let source = server.map_or(ToolSource::Custom, |server| {
            ToolSource::Mcp(server.to_owned())
        });
        placeholder_tool(tool, source).is_some_and(|tool| self.has_tool(&tool))
    }

    /// The servers that the caller may see. Their output may contain arguments of other callers, so
    /// it is left out unless the caller sees everything.
    pub(crate) fn servers(&self) -> Vec<ServerStatus> {
        let mut servers = self.gateway.parts.servers.status();
        servers.retain(|server| self.has_server(&server.name));
        if !self.sees_all() {
            for server in &mut servers {
                server.stderr.clear();
                server.stray_lines.clear();
                // Changes name tools that the caller may not know.
                server.changes = None;
                server.sampling = None;
            }
        }
        servers
    }

    /// A server is visible to callers who may use one of its tools, resources or prompts, or whose
    /// tool patterns name it.
    pub(crate) fn has_server(&self, server: &str) -> bool {
        if self.has_all_tools() {
            return true;
        }
        let tools = self.gateway.executor().manager().tools();
        let mut definitions = tools.iter().map(|tool| tool.definition());
        let is_of_server = |tool: &&ToolDefinition| {
            matches!(tool.source(), ToolSource::Mcp(name) if name == server) && self.has_tool(tool)
        };
        definitions.any(|tool| is_of_server(&tool))
            || self.offers_content(server)
            || self.names_server(server)
    }

    fn offers_content(&self, server: &str) -> bool {
        let executor = self.gateway.executor();
        let content = executor.manager().content();
        let owner = content.source(&ToolSource::Mcp(server.to_owned()));
        let rules = executor.rules();
        owner.is_some_and(|owner| {
            let mut methods = [ContentMethod::ReadResource, ContentMethod::GetPrompt].into_iter();
            methods.any(|method| owner.is_offered(method, &rules, &self.scope))
        })
    }

    fn names_server(&self, server: &str) -> bool {
        let Some(server) = placeholder_tool(server, ToolSource::Custom) else {
            return false;
        };
        let mut patterns = self.scope.patterns().into_iter().flatten();
        patterns.any(|pattern| {
            let text = pattern.to_string();
            let of_server = text.split_once('/');
            of_server.is_some_and(|(name, _)| ToolPattern::new(name).matches(&server))
        })
    }
}

/// A tool with only a name and a source, to match patterns against.
fn placeholder_tool(name: &str, source: ToolSource) -> Option<ToolDefinition> {
    let original = match &source {
        ToolSource::Mcp(server) => {
            let prefix = format!("{server}__");
            name.strip_prefix(&prefix).unwrap_or(name)
        }
        _ => name,
    };
    let original = original.to_owned();
    let parameters = serde_json::json!({ "type": "object" });
    let tool = ToolDefinition::builder(name, "?", parameters).source(source);
    tool.original_name(original).build().ok()
}

#[cfg(test)]
mod tests {
    use toolgate_core::Scope;

    use super::*;

    /// The tool of a recorded call may be gone, so only its recorded name is matched.
    #[test]
    fn a_pattern_without_a_server_does_not_match_calls_of_a_server() {
        let notes = || ToolSource::Mcp("notes".to_owned());
        for (allowed, tool, expected) in [
            ("datetime", "notes__datetime", false),
            ("datetime", "datetime", true),
            ("notes/datetime", "notes__datetime", true),
            ("notes__*", "notes__datetime", true),
            ("house/*", "house/lamp", false),
        ] {
            let scope = Scope::only(vec![ToolPattern::new(allowed)]);
            let tool = placeholder_tool(tool, notes()).unwrap();
            assert_eq!(scope.allows(&tool), expected, "{allowed} {}", tool.name());
        }
    }
}
