//! What one caller may see of tools, servers and calls.

use toolgate_core::{Pattern, Scope, Source, ToolDefinition, kept};
use toolgate_journal::CallSummary;
use toolgate_mcp::ServerStatus;

use crate::Gateway;
use crate::guard::Caller;

/// The gateway through a caller's eyes.
#[derive(Clone)]
pub(crate) struct Sight {
    gateway: Gateway,
    scope: Scope,
    sees_all: bool,
    /// Whose calls it sees, as they are recorded; `None` for everybody's.
    only_of: Option<String>,
}

impl Sight {
    pub(crate) fn new(gateway: &Gateway, caller: &Caller) -> Self {
        Self {
            gateway: gateway.clone(),
            scope: caller.scope.clone(),
            sees_all: caller.rights.see_all,
            only_of: (!caller.rights.see_all).then(|| {
                let name = caller.scope.caller().unwrap_or_default();
                kept::name(&gateway.parts().redactor, name)
            }),
        }
    }

    pub(crate) fn has_all_tools(&self) -> bool {
        self.scope.is_everything()
    }

    /// True for whoever may read everything, whoever it is about.
    pub(crate) fn sees_all(&self) -> bool {
        self.sees_all && self.has_all_tools()
    }

    /// True for whoever sees no call at all: there is nothing to look for.
    pub(crate) fn is_blind(&self) -> bool {
        let has_nothing = self.scope.patterns().is_some_and(<[_]>::is_empty);
        has_nothing || self.only_of.as_deref() == Some("")
    }

    pub(crate) fn has(&self, tool: &ToolDefinition) -> bool {
        self.gateway.executor().is_visible_in(tool, &self.scope)
    }

    pub(crate) fn tools(&self) -> usize {
        let tools = self.gateway.executor().manager().tools();
        tools
            .iter()
            .filter(|tool| self.has(tool.definition()))
            .count()
    }

    /// The one whose calls it sees; `None` for everybody's. Empty for whoever has no name, and sees none.
    pub(crate) fn only_of(&self) -> Option<&str> {
        self.only_of.as_deref()
    }

    /// Whether a call that this caller made is to be seen: only its own without the right to see all.
    pub(crate) fn is_of_whom_it_sees(&self, caller: Option<&str>) -> bool {
        let only_of = self.only_of.as_deref();
        only_of.is_none_or(|name| caller == Some(name))
    }

    /// Whether a call of this tool, as it was recorded, is the caller's business. The tool may be gone by now, or never have
    /// been there.
    pub(crate) fn has_call(&self, call: &CallSummary) -> bool {
        self.is_of_whom_it_sees(call.caller.as_deref())
            && self.has_tool_of_call(&call.tool, call.server.as_deref())
    }

    pub(crate) fn has_tool_of_call(&self, tool: &str, server: Option<&str>) -> bool {
        if self.has_all_tools() {
            return true;
        }
        let found = self.gateway.executor().find_in(tool, &self.scope);
        let is_of_server = |definition: &ToolDefinition| match definition.source() {
            Source::Mcp(name) => Some(name.as_str()) == server,
            _ => server.is_none(),
        };
        if let Ok(tool) = found {
            return is_of_server(tool.definition());
        }
        let source = server.map_or(Source::Custom, |server| Source::Mcp(server.to_owned()));
        stand_in(tool, source).is_some_and(|tool| self.has(&tool))
    }

    /// All servers the caller may know of, as they are now. What they print may hold arguments of others.
    pub(crate) fn servers(&self) -> Vec<ServerStatus> {
        let mut servers = self.gateway.parts().servers.status();
        servers.retain(|server| self.has_server(&server.name));
        if !self.sees_all() {
            for server in &mut servers {
                server.stderr.clear();
                server.polluted_lines.clear();
                // It tells of tools that the caller may not know.
                server.changes = None;
            }
        }
        servers
    }

    /// A server is there for those who may use one of its tools, or are named it in their list.
    pub(crate) fn has_server(&self, server: &str) -> bool {
        if self.has_all_tools() {
            return true;
        }
        let tools = self.gateway.executor().manager().tools();
        let mut definitions = tools.iter().map(|tool| tool.definition());
        let is_of_server = |tool: &&ToolDefinition| {
            matches!(tool.source(), Source::Mcp(name) if name == server) && self.has(tool)
        };
        definitions.any(|tool| is_of_server(&tool)) || self.names_server(server)
    }

    fn names_server(&self, server: &str) -> bool {
        let Some(server) = stand_in(server, Source::Custom) else {
            return false;
        };
        let mut patterns = self.scope.patterns().into_iter().flatten();
        patterns.any(|pattern| {
            let text = pattern.to_string();
            let of_server = text.split_once('/').map(|(server, _)| Pattern::new(server));
            of_server.is_some_and(|pattern| pattern.matches(&server))
        })
    }
}

/// A tool that has nothing but a name, for patterns to be matched against.
fn stand_in(name: &str, source: Source) -> Option<ToolDefinition> {
    let original = match &source {
        Source::Mcp(server) => {
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

    /// The tools of recorded calls may be gone, and are judged by what they were listed as.
    #[test]
    fn a_recorded_call_of_another_server_is_not_shown_for_its_bare_name() {
        let notes = || Source::Mcp("notes".to_owned());
        for (allowed, tool, expected) in [
            ("datetime", "notes__datetime", false),
            ("datetime", "datetime", true),
            ("notes/datetime", "notes__datetime", true),
            ("notes__*", "notes__datetime", true),
            ("house/*", "house/lamp", false),
        ] {
            let scope = Scope::only(vec![Pattern::new(allowed)]);
            let tool = stand_in(tool, notes()).unwrap();
            assert_eq!(scope.has(&tool), expected, "{allowed} {}", tool.name());
        }
    }
}
