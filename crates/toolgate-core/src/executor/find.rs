//! The first step of a call: a tool by its name, as far as the caller may see it.

use std::sync::Arc;

use super::ToolExecutor;
use crate::tools::of_server;
use crate::{Rules, Scope, Source, Tool, ToolDefinition, ToolError, nearest};

impl ToolExecutor {
    /// A tool by name. One that the policy hides is not found, so that nothing is learnt of it.
    pub fn find(&self, name: &str) -> Result<Arc<dyn Tool>, ToolError> {
        self.find_in(name, &Scope::default())
    }

    /// The same for a caller with a share of the tools.
    pub fn find_in(&self, name: &str, scope: &Scope) -> Result<Arc<dyn Tool>, ToolError> {
        self.find_under(&self.shared.rules.load(), name, scope)
    }

    /// The same under the rules of one call.
    pub(super) fn find_under(
        &self,
        rules: &Rules,
        name: &str,
        scope: &Scope,
    ) -> Result<Arc<dyn Tool>, ToolError> {
        let admitted = |tool: &Arc<dyn Tool>| rules.admits(tool.definition(), scope);
        match self.shared.manager.find(name).filter(admitted) {
            Some(tool) => not_withheld(name, tool),
            None => self.find_among_visible(rules, name, scope),
        }
    }

    #[cold]
    fn find_among_visible(
        &self,
        rules: &Rules,
        name: &str,
        scope: &Scope,
    ) -> Result<Arc<dyn Tool>, ToolError> {
        let tools = self.shared.manager.tools();
        let visible = |tool: &&Arc<dyn Tool>| rules.shows(tool.definition(), scope);
        // A withheld tool counts: were it left out, another server's tool would answer under the name.
        let admitted = |tool: &&Arc<dyn Tool>| rules.admits(tool.definition(), scope);
        let sharing: Vec<_> = tools.sharing(name).filter(admitted).collect();
        if let [only] = sharing.as_slice() {
            return not_withheld(name, Arc::clone(only));
        }
        if sharing.is_empty()
            && let Some(error) = self.absent(rules, name, scope)
        {
            return Err(error);
        }
        let name_of = |tool: &Arc<dyn Tool>| tool.definition().name().to_owned();
        let known: Vec<String> = tools.iter().filter(visible).map(name_of).collect();
        let nearest = if sharing.is_empty() {
            let of_server = nearest_of_server(name, tools.iter().filter(visible));
            match of_server.is_empty() {
                true => nearest(name, known.iter().map(String::as_str), 3),
                false => of_server,
            }
        } else {
            sharing.into_iter().filter(visible).map(name_of).collect()
        };
        Err(ToolError::NotFound {
            name: crate::text::cut(name, 200),
            nearest,
            known,
        })
    }

    /// Why the server that is asked has no tools now; nothing where the policy would hide the tool.
    fn absent(&self, rules: &Rules, name: &str, scope: &Scope) -> Option<ToolError> {
        let (server, tool, reason) = self.shared.manager.absent(name)?;
        let parameters = serde_json::json!({ "type": "object" });
        let asked = ToolDefinition::builder(tool, "?", parameters).source(Source::Mcp(server));
        let visible = asked.build().is_ok_and(|tool| rules.shows(&tool, scope));
        visible.then(|| ToolError::unavailable(crate::text::cut(name, 200), reason))
    }
}

fn not_withheld(name: &str, tool: Arc<dyn Tool>) -> Result<Arc<dyn Tool>, ToolError> {
    match tool.definition().withheld() {
        None => Ok(tool),
        Some(why) => Err(why.error(crate::text::cut(name, 200))),
    }
}

/// Tools that are meant by a slip behind `<server>__`, as `<server>__<tool>`.
fn nearest_of_server<'a>(
    name: &str,
    tools: impl Iterator<Item = &'a Arc<dyn Tool>>,
) -> Vec<String> {
    let mut asked = None;
    let mut names = Vec::new();
    for tool in tools.map(|tool| tool.definition()) {
        if let Source::Mcp(server) = tool.source()
            && let Some(tail) = of_server(server, name)
        {
            asked = Some(tail);
            names.push(tool.original_name());
        }
    }
    let Some(asked) = asked else {
        return Vec::new();
    };
    let prefix = &name[..name.len() - asked.len()];
    let near = nearest(asked, names, 3).into_iter();
    near.map(|tool| format!("{prefix}{tool}")).collect()
}
