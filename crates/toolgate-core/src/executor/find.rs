//! Finds a tool by name among those that the caller may see.

use std::sync::Arc;

use super::ToolExecutor;
use crate::text::{escape_truncated, nearest_names};
use crate::tool_set::strip_server;
use crate::{ExecutionRules, Scope, Tool, ToolDefinition, ToolError, ToolSource};

impl ToolExecutor {
    /// Finds a tool by name. A tool that the policy hides is reported as not found, so that
    /// its existence doesn't leak.
    pub fn find(&self, name: &str) -> Result<Arc<dyn Tool>, ToolError> {
        self.find_in_scope(name, &Scope::default())
    }

    /// Like [`find`](Self::find), within a scope.
    pub fn find_in_scope(&self, name: &str, scope: &Scope) -> Result<Arc<dyn Tool>, ToolError> {
        self.find_with_rules(&self.shared.rules.load(), name, scope)
    }

    pub(super) fn find_with_rules(
        &self,
        rules: &ExecutionRules,
        name: &str,
        scope: &Scope,
    ) -> Result<Arc<dyn Tool>, ToolError> {
        let admitted = |tool: &Arc<dyn Tool>| rules.admits(tool.definition(), scope);
        match self.shared.manager.find(name).filter(admitted) {
            Some(tool) => reject_withheld(name, tool),
            None => self.find_among_visible(rules, name, scope),
        }
    }

    #[cold]
    fn find_among_visible(
        &self,
        rules: &ExecutionRules,
        name: &str,
        scope: &Scope,
    ) -> Result<Arc<dyn Tool>, ToolError> {
        let tools = self.shared.manager.tools();
        let visible = |tool: &&Arc<dyn Tool>| rules.offers(tool.definition(), scope);
        // A withheld tool still counts: otherwise another server's tool would
        // answer under its name.
        let admitted = |tool: &&Arc<dyn Tool>| rules.admits(tool.definition(), scope);
        let sharing: Vec<_> = tools.with_original_name(name).filter(admitted).collect();
        if let [only] = sharing.as_slice() {
            return reject_withheld(name, Arc::clone(only));
        }
        if sharing.is_empty()
            && let Some(error) = self.absence_error(rules, name, scope)
        {
            return Err(error);
        }
        let name_of = |tool: &Arc<dyn Tool>| tool.definition().name().to_owned();
        let known: Vec<String> = tools.iter().filter(visible).map(name_of).collect();
        let nearest = if sharing.is_empty() {
            let on_server = nearest_on_server(name, tools.iter().filter(visible));
            match on_server.is_empty() {
                true => nearest_names(name, known.iter().map(String::as_str), 3),
                false => on_server,
            }
        } else {
            sharing.into_iter().filter(visible).map(name_of).collect()
        };
        Err(ToolError::NotFound {
            name: escape_truncated(name, 200),
            nearest,
            known,
        })
    }

    // Explains why a server has no tools. Not for hidden tools: it would reveal that they exist.
    fn absence_error(
        &self,
        rules: &ExecutionRules,
        name: &str,
        scope: &Scope,
    ) -> Option<ToolError> {
        let (server, tool, reason) = self.shared.manager.find_absent(name)?;
        let parameters = serde_json::json!({ "type": "object" });
        let wanted = ToolDefinition::builder(tool, "?", parameters).source(ToolSource::Mcp(server));
        let visible = wanted.build().is_ok_and(|tool| rules.offers(&tool, scope));
        visible.then(|| ToolError::unavailable(escape_truncated(name, 200), reason))
    }
}

fn reject_withheld(name: &str, tool: Arc<dyn Tool>) -> Result<Arc<dyn Tool>, ToolError> {
    match tool.definition().withheld() {
        None => Ok(tool),
        Some(why) => Err(why.error(escape_truncated(name, 200))),
    }
}

// Similar tools of the server that `name` begins with: someone who wrote
// `<server>__` meant that server.
fn nearest_on_server<'a>(
    name: &str,
    tools: impl Iterator<Item = &'a Arc<dyn Tool>>,
) -> Vec<String> {
    let mut wanted = None;
    let mut names = Vec::new();
    for tool in tools.map(|tool| tool.definition()) {
        if let ToolSource::Mcp(server) = tool.source()
            && let Some(tail) = strip_server(server, name)
        {
            wanted = Some(tail);
            names.push(tool.original_name());
        }
    }
    let Some(wanted) = wanted else {
        return Vec::new();
    };
    let prefix = &name[..name.len() - wanted.len()];
    let near = nearest_names(wanted, names, 3).into_iter();
    near.map(|tool| format!("{prefix}{tool}")).collect()
}
