//! [`ToolSet`]: a snapshot of all tools and the names they are listed under.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use tracing::warn;

use crate::text::{escape, escape_truncated};
use crate::{
    CallContext, Tool, ToolDefinition, ToolFuture, ToolSource, ValidArguments,
    tool_name::display_name,
};

/// The rank of a tool's source: lists are sorted by it, and the lowest rank keeps a name
/// that several sources use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolRank {
    /// A server that may take the names of local tools, by its position in the configuration.
    Override(usize),
    /// A tool in this process.
    Local,
    /// A server, by its position in the configuration.
    Server(usize),
}

/// An immutable snapshot of all tools, with the names they are listed under.
#[derive(Default)]
pub struct ToolSet {
    by_name: IndexMap<String, ListedEntry>,
    // By `<server>__<tool>`, even where a tool is listed under a shorter name.
    by_server: HashMap<String, usize>,
    // Servers with tools, by display name.
    servers: HashSet<String>,
    // Only tools that are listed under another name than their server's.
    by_original: HashMap<String, Vec<usize>>,
}

struct ListedEntry {
    tool: Arc<dyn Tool>,
    registered: RegisteredTool,
}

#[derive(Clone)]
pub(crate) struct RegisteredTool {
    pub(crate) rank: ToolRank,
    pub(crate) tool: Arc<dyn Tool>,
}

impl ToolSet {
    /// Finds a tool by the exact name it is listed under, then by `<server>__<tool>`, then by its
    /// name on its server if only one server uses that name.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        match self.by_name.get(name) {
            Some(entry) => Some(&entry.tool),
            None => self.find_by_server(name),
        }
    }

    #[cold]
    fn find_by_server(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        // Servers are indexed by display name, so a name with invisible characters has to be
        // escaped to match.
        let by_server = self.by_server.get(name);
        if let Some(index) = by_server.or_else(|| self.by_server.get(&*display_name(name))) {
            return Some(self.tool_at(*index));
        }
        match self.by_original.get(name)?.as_slice() {
            [only] => Some(self.tool_at(*only)),
            _ => None,
        }
    }

    /// All tools that have this name on their servers but are listed under a different one.
    pub fn with_original_name(&self, original_name: &str) -> impl Iterator<Item = &Arc<dyn Tool>> {
        let indexes = self.by_original.get(original_name).into_iter().flatten();
        indexes.map(|index| self.tool_at(*index))
    }

    /// Iterates in order of rank, then in the order the tools were added.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<dyn Tool>> {
        self.by_name.values().map(|entry| &entry.tool)
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    fn tool_at(&self, index: usize) -> &Arc<dyn Tool> {
        &self.by_name[index].tool
    }

    pub(crate) fn registered(&self) -> impl Iterator<Item = &RegisteredTool> {
        self.by_name.values().map(|entry| &entry.registered)
    }

    // A name goes to the tool with the first rank, so that no server takes over a name that was in
    // use before. The others are listed as `<server>__<tool>`. `before` is the previous snapshot,
    // whose clashes aren't logged again.
    pub(crate) fn assign_names(mut all: Vec<RegisteredTool>, before: &Self) -> Self {
        all.sort_by_key(|registered| registered.rank);
        let mut tools = Self {
            by_name: IndexMap::with_capacity(all.len()),
            ..Self::default()
        };
        tools.index_by_server(&all);
        let mut clashes = Vec::new();
        for (index, registered) in all.iter().enumerate() {
            let name = tools.choose_name(index, registered.tool.definition());
            // Reuses the previous wrapper, so that an unchanged tool stays the same `Arc`.
            let tool = match before.by_name.get(&name) {
                Some(known) if Arc::ptr_eq(&known.registered.tool, &registered.tool) => {
                    Arc::clone(&known.tool)
                }
                _ => RenamedTool::wrap(&registered.tool, &name),
            };
            clashes.extend(tools.find_clash(&name, &all, index, before));
            let original = tool.definition().original_name();
            if original != name
                && tools
                    .impersonated_server(tool.definition(), original)
                    .is_none()
            {
                let sharing = tools.by_original.entry(original.to_owned());
                sharing.or_default().push(index);
            }
            let registered = registered.clone();
            tools.by_name.insert(name, ListedEntry { tool, registered });
        }
        warn_about_clashes(clashes);
        tools
    }

    // Indexes each tool by its display name, and by its original name unless another tool of that
    // server is shown under it.
    fn index_by_server(&mut self, all: &[RegisteredTool]) {
        let definitions = || all.iter().map(|registered| registered.tool.definition());
        let listed = definitions().map(|tool| (tool, tool.name())).enumerate();
        let original = definitions().map(|tool| (tool, tool.original_name()));
        for (index, (tool, name)) in listed.chain(original.enumerate()) {
            if let ToolSource::Mcp(server) = tool.source() {
                if !self.servers.contains(&*display_name(server)) {
                    self.servers.insert(display_name(server).into_owned());
                }
                let name = qualified_name(tool, name);
                self.by_server.entry(name).or_insert(index);
            }
        }
    }

    // A server could list `other__tool` and be taken for `other`, even if `other` has no such tool.
    fn impersonated_server<'n>(&self, tool: &ToolDefinition, name: &'n str) -> Option<&'n str> {
        let ToolSource::Mcp(own) = tool.source() else {
            return None;
        };
        let own = display_name(own);
        let prefixes = name.match_indices("__").map(|(at, _)| &name[..at]);
        let mut others = prefixes.filter(|prefix| *prefix != own);
        others.find(|prefix| self.servers.contains(*prefix))
    }

    // Tries the tool's own name, then `<server>__<tool>`, then that with a number.
    fn choose_name(&self, index: usize, definition: &ToolDefinition) -> String {
        let listed = |name: &str| self.by_name.contains_key(name);
        // No server may list its own tool under the qualified name of another server's tool.
        let belongs_to_another = |name: &str| {
            self.by_server
                .get(name)
                .is_some_and(|other| *other != index)
        };
        let own = definition.name();
        let is_free =
            || !belongs_to_another(own) && self.impersonated_server(definition, own).is_none();
        if !listed(own) && (definition.source().is_local() || is_free()) {
            return own.to_owned();
        }
        let long = qualified_name(definition, definition.name());
        let numbered = (2_usize..).map(|number| format!("{long}_{number}"));
        let mut names = std::iter::once(long.clone()).chain(numbered);
        let free = names.find(|name| !listed(name) && !belongs_to_another(name));
        // There are more numbers than tools, so one is always free.
        free.unwrap_or(long)
    }

    // `None` if the tool keeps its name, or if the previous snapshot had the same clash.
    fn find_clash(
        &self,
        name: &str,
        all: &[RegisteredTool],
        index: usize,
        before: &Self,
    ) -> Option<NameClash> {
        let definition = all[index].tool.definition();
        let own = definition.name();
        if own == name {
            return None;
        }
        let first = match self.by_name.get(own) {
            Some(entry) => Some(entry.tool.definition().source()),
            None => self
                .by_server
                .get(own)
                .map(|first| all[*first].tool.definition().source()),
        };
        let is_known = before.by_name.get(name).is_some_and(|known| {
            let known = known.registered.tool.definition();
            let first_then = before.find(own).map(|tool| tool.definition().source());
            known.name() == own && known.source() == definition.source() && first_then == first
        });
        let taken_for = || {
            let server = self.impersonated_server(definition, own)?;
            Some(ToolSource::Mcp(server.to_owned()).to_string())
        };
        (!is_known).then(|| NameClash {
            first: first
                .map(ToolSource::to_string)
                .or_else(taken_for)
                .unwrap_or_default(),
            second: definition.source().to_string(),
            tool: own.to_owned(),
            listed: name.to_owned(),
        })
    }
}

struct NameClash {
    first: String,
    second: String,
    tool: String,
    listed: String,
}

// One line per pair of sources, because two servers of the same kind clash with every tool.
fn warn_about_clashes(clashes: Vec<NameClash>) {
    const MAX_LISTED: usize = 5;
    const MAX_NAME_BYTES: usize = 200;
    let mut pairs: IndexMap<(String, String), Vec<NameClash>> = IndexMap::new();
    for clash in clashes {
        let pair = (clash.first.clone(), clash.second.clone());
        pairs.entry(pair).or_default().push(clash);
    }
    for ((first, second), clashes) in pairs {
        let (first, second) = (escape(&first), escape(&second));
        match clashes.as_slice() {
            [NameClash { tool, listed, .. }] => {
                let (tool, listed) = (
                    escape_truncated(tool, MAX_NAME_BYTES),
                    escape_truncated(listed, MAX_NAME_BYTES),
                );
                warn!(%tool, %first, %second, %listed, "two tools have the same name; the second one is listed under a longer name");
            }
            several => {
                let names = several.iter().take(MAX_LISTED);
                let names: Vec<String> = names
                    .map(|clash| escape_truncated(&clash.listed, MAX_NAME_BYTES))
                    .collect();
                let (listed, count) = (names.join(", "), several.len());
                warn!(%first, %second, count, %listed, "two sources have tools of the same names; those of the second are listed under longer names");
            }
        }
    }
}

// No character is replaced, or two tools could end up with the same name.
fn qualified_name(definition: &ToolDefinition, tool: &str) -> String {
    match definition.source() {
        ToolSource::Mcp(server) => format!("{}__{tool}", display_name(server)),
        local => format!("{local}__{tool}"),
    }
}

/// The tool's part of `<server>__<tool>`, if `name` begins with this server.
pub(crate) fn strip_server<'n>(server: &str, name: &'n str) -> Option<&'n str> {
    let tool = name
        .strip_prefix(&*display_name(server))?
        .strip_prefix("__")?;
    (!tool.is_empty()).then_some(tool)
}

// A tool that is listed under another name than the one it was registered with.
struct RenamedTool {
    definition: ToolDefinition,
    tool: Arc<dyn Tool>,
}

impl RenamedTool {
    fn wrap(tool: &Arc<dyn Tool>, name: &str) -> Arc<dyn Tool> {
        let definition = tool.definition();
        if definition.name() == name {
            return Arc::clone(tool);
        }
        Arc::new(Self {
            definition: definition.with_name(name.to_owned()),
            tool: Arc::clone(tool),
        })
    }
}

impl Tool for RenamedTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        self.tool.invoke(arguments, context)
    }
}
