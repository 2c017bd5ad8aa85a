//! The tools at one moment, and the names they are listed under.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;
use tracing::warn;

use crate::text::cut;
use crate::{
    CallContext, Source, Tool, ToolDefinition, ToolFuture, ValidArguments, tool_name::shown,
};

/// Who goes first: in the order of tools, and where two of them have the same name.
///
/// ```
/// use toolgate_core::Rank;
///
/// assert!(Rank::Override(7) < Rank::Local && Rank::Local < Rank::Server(0) && Rank::Server(0) < Rank::Server(1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// A server that may take the names of local tools, by its place in the configuration.
    Override(usize),
    /// What lives in this process.
    Local,
    /// A server, by its place in the configuration.
    Server(usize),
}

/// The tools at one moment.
///
/// ```
/// use toolgate_core::ToolManager;
///
/// let tools = ToolManager::new().tools();
/// assert!(tools.is_empty() && tools.find("echo").is_none());
/// ```
#[derive(Default)]
pub struct Tools {
    /// By the name that each is listed under, in order.
    by_name: IndexMap<String, Entry>,
    /// By `<server>__<tool>`, whatever they are listed under.
    by_server: HashMap<String, usize>,
    /// Those that have tools, as they are shown.
    servers: HashSet<String>,
    /// Where a tool's name on its server is another one than here.
    by_original: HashMap<String, Vec<usize>>,
}

struct Entry {
    tool: Arc<dyn Tool>,
    registered: Registered,
}

#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) rank: Rank,
    pub(crate) tool: Arc<dyn Tool>,
}

impl Tools {
    /// By the exact name it is listed under, else by `<server>__<tool>`, else by a name that only one server uses for one of
    /// its tools.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        match self.by_name.get(name) {
            Some(entry) => Some(&entry.tool),
            None => self.find_by_server(name),
        }
    }

    #[cold]
    fn find_by_server(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        // The server's own name may have to be escaped.
        let by_server = self.by_server.get(name);
        if let Some(index) = by_server.or_else(|| self.by_server.get(&*shown(name))) {
            return Some(self.at(*index));
        }
        match self.by_original.get(name)?.as_slice() {
            [only] => Some(self.at(*only)),
            _ => None,
        }
    }

    /// All tools that have this name on their servers and another one here.
    pub fn sharing(&self, original_name: &str) -> impl Iterator<Item = &Arc<dyn Tool>> {
        let indexes = self.by_original.get(original_name).into_iter().flatten();
        indexes.map(|index| self.at(*index))
    }

    /// All of them, as they are, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<dyn Tool>> {
        self.by_name.values().map(|entry| &entry.tool)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    fn at(&self, index: usize) -> &Arc<dyn Tool> {
        &self.by_name[index].tool
    }

    pub(crate) fn registered(&self) -> impl Iterator<Item = &Registered> {
        self.by_name.values().map(|entry| &entry.registered)
    }

    /// Orders and names tools. A name goes to the first in rank that has it, so that no server takes over what was there
    /// before it; the others are listed as `<server>__<tool>`. `before` tells which clashes are known already.
    pub(crate) fn name(mut all: Vec<Registered>, before: &Self) -> Self {
        all.sort_by_key(|registered| registered.rank);
        let mut tools = Self {
            by_name: IndexMap::with_capacity(all.len()),
            ..Self::default()
        };
        tools.index_by_server(&all);
        let mut clashes = Vec::new();
        for (index, registered) in all.iter().enumerate() {
            let name = tools.free_name(index, registered.tool.definition());
            let tool = match before.by_name.get(&name) {
                Some(known) if Arc::ptr_eq(&known.registered.tool, &registered.tool) => {
                    Arc::clone(&known.tool)
                }
                _ => Listed::of(&registered.tool, &name),
            };
            clashes.extend(tools.clash(&name, &all, index, before));
            let original = tool.definition().original_name();
            if original != name && tools.other_server(tool.definition(), original).is_none() {
                let sharing = tools.by_original.entry(original.to_owned());
                sharing.or_default().push(index);
            }
            let registered = registered.clone();
            tools.by_name.insert(name, Entry { tool, registered });
        }
        warn_of(clashes);
        tools
    }

    /// As each is shown, and as its server says it where no other tool is shown like that.
    fn index_by_server(&mut self, all: &[Registered]) {
        let definitions = || all.iter().map(|registered| registered.tool.definition());
        let listed = definitions().map(|tool| (tool, tool.name())).enumerate();
        let original = definitions().map(|tool| (tool, tool.original_name()));
        for (index, (tool, name)) in listed.chain(original.enumerate()) {
            if let Source::Mcp(server) = tool.source() {
                if !self.servers.contains(&*shown(server)) {
                    self.servers.insert(shown(server).into_owned());
                }
                let name = with_server(tool, name);
                self.by_server.entry(name).or_insert(index);
            }
        }
    }

    /// The other server whose tool this name would be taken for, whether that one has it or not.
    fn other_server<'n>(&self, tool: &ToolDefinition, name: &'n str) -> Option<&'n str> {
        let Source::Mcp(own) = tool.source() else {
            return None;
        };
        let own = shown(own);
        let prefixes = name.match_indices("__").map(|(at, _)| &name[..at]);
        let mut others = prefixes.filter(|prefix| *prefix != own);
        others.find(|prefix| self.servers.contains(*prefix))
    }

    /// Its own name, else that with the server's before it, else that with a number.
    fn free_name(&self, index: usize, definition: &ToolDefinition) -> String {
        let listed = |name: &str| self.by_name.contains_key(name);
        // No server may call a tool of its own as if it were that of another.
        let meant = |name: &str| self.by_server.get(name).is_some_and(|of| *of != index);
        let own = definition.name();
        let is_free = || !meant(own) && self.other_server(definition, own).is_none();
        if !listed(own) && (definition.source().is_local() || is_free()) {
            return own.to_owned();
        }
        let long = with_server(definition, definition.name());
        let numbered = (2_usize..).map(|number| format!("{long}_{number}"));
        let mut names = std::iter::once(long.clone()).chain(numbered);
        let free = names.find(|name| !listed(name) && !meant(name));
        free.unwrap_or(long) // There are more numbers than tools.
    }

    /// With whom a tool clashes that is listed under `name`; none if it does not, or did before.
    fn clash(&self, name: &str, all: &[Registered], index: usize, before: &Self) -> Option<Clash> {
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
            let server = self.other_server(definition, own)?;
            Some(Source::Mcp(server.to_owned()).to_string())
        };
        (!is_known).then(|| Clash {
            first: first
                .map(Source::to_string)
                .or_else(taken_for)
                .unwrap_or_default(),
            second: definition.source().to_string(),
            tool: own.to_owned(),
            listed: name.to_owned(),
        })
    }
}

struct Clash {
    first: String,
    second: String,
    tool: String,
    listed: String,
}

/// One line for each pair of sources: two servers of a kind clash in everything they have.
fn warn_of(clashes: Vec<Clash>) {
    const NAMED: usize = 5;
    const NAME: usize = 200;
    let mut pairs: IndexMap<(String, String), Vec<Clash>> = IndexMap::new();
    for clash in clashes {
        let pair = (clash.first.clone(), clash.second.clone());
        pairs.entry(pair).or_default().push(clash);
    }
    for ((first, second), clashes) in pairs {
        let (first, second) = (crate::escape(&first), crate::escape(&second));
        match clashes.as_slice() {
            [Clash { tool, listed, .. }] => {
                let (tool, listed) = (cut(tool, NAME), cut(listed, NAME));
                warn!(%tool, %first, %second, %listed, "two tools have the same name: the second is listed under another");
            }
            several => {
                let names = several.iter().take(NAMED);
                let names: Vec<String> = names.map(|clash| cut(&clash.listed, NAME)).collect();
                let (listed, count) = (names.join(", "), several.len());
                warn!(%first, %second, count, %listed, "tools have the same names: those of the second are listed under others");
            }
        }
    }
}

/// `<server>__<tool>`, to the letter: were any character replaced, two tools could meet in one name.
fn with_server(definition: &ToolDefinition, tool: &str) -> String {
    match definition.source() {
        Source::Mcp(server) => format!("{}__{tool}", shown(server)),
        local => format!("{local}__{tool}"),
    }
}

/// What `name` calls a tool of this server.
pub(crate) fn of_server<'n>(server: &str, name: &'n str) -> Option<&'n str> {
    let tool = name.strip_prefix(&*shown(server))?.strip_prefix("__")?;
    (!tool.is_empty()).then_some(tool)
}

/// A tool under another name than the one it was registered with.
struct Listed {
    definition: ToolDefinition,
    tool: Arc<dyn Tool>,
}

impl Listed {
    fn of(tool: &Arc<dyn Tool>, name: &str) -> Arc<dyn Tool> {
        let definition = tool.definition();
        if definition.name() == name {
            return Arc::clone(tool);
        }
        Arc::new(Self {
            definition: definition.listed_as(name.to_owned()),
            tool: Arc::clone(tool),
        })
    }
}

impl Tool for Listed {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn invoke<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        self.tool.invoke(arguments, context)
    }
}
