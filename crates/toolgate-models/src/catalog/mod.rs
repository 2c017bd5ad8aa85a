//! The tools in one provider's form: names it accepts, schemas it understands, ready to be sent.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use serde_json::value::RawValue;
use toolgate_core::{Tool, ToolDefinition, wire_names};

use crate::ranking::Index;
use crate::{ToolList, tokens};

/// All tools of a list in one provider's form, sorted by name so that a prompt cache sees the same prefix every time.
pub struct Catalog {
    /// Sorted by their names here.
    tools: Vec<CatalogTool>,
    /// Their places, sorted by the names they are listed under.
    by_listed_name: Vec<usize>,
    left_out: Vec<LeftOut>,
    longest_name: usize,
    /// For ranking; made when it is first needed.
    index: OnceLock<Index>,
}

/// One tool in a provider's form.
pub struct CatalogTool {
    /// Legal for the provider, unique in the catalog.
    pub wire_name: String,
    /// The tool itself.
    pub tool: Arc<dyn Tool>,
    /// What is sent.
    pub json: Arc<RawValue>,
    /// About how many tokens that is.
    pub tokens: usize,
}

impl CatalogTool {
    fn listed_name(&self) -> &str {
        self.tool.definition().name()
    }

    fn is(&self, tool: &Arc<dyn Tool>, wire_name: &str) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.tool), Arc::as_ptr(tool)) && self.wire_name == wire_name
    }
}

/// A tool that this provider can not be offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The name it is listed under.
    pub name: String,
    /// What stands in the way.
    pub reason: String,
}

impl LeftOut {
    fn new(tool: &Arc<dyn Tool>, reason: impl Into<String>) -> Self {
        Self {
            name: tool.definition().name().to_owned(),
            reason: reason.into(),
        }
    }
}

/// What a provider accepts. The functions are pure: a tool goes in, JSON comes out.
pub(crate) struct Dialect {
    pub(crate) longest_name: usize,
    /// True if a tool of an MCP server goes out under its name there, as far as that is unique.
    pub(crate) original_names: bool,
    pub(crate) convert: fn(&ToolDefinition, wire_name: &str) -> Result<Box<RawValue>, String>,
}

/// Tools that a model may use in one round: all of a catalog or the best of it, in the catalog's order.
pub struct Offer {
    catalog: Arc<Catalog>,
    chosen: Option<Vec<usize>>,
}

/// Keeps the catalog of the last list of tools, so that a list is converted once, and of the next one only what is new.
#[derive(Default)]
pub(crate) struct CatalogCache(Mutex<Option<(Arc<ToolList>, Arc<Catalog>)>>);

impl CatalogCache {
    pub(crate) fn get(&self, tools: &Arc<ToolList>, dialect: &Dialect) -> Arc<Catalog> {
        self.get_or(tools, dialect, |_| {})
    }

    /// Like [`get`](Self::get); `converted` sees each new catalog.
    pub(crate) fn get_or(
        &self,
        tools: &Arc<ToolList>,
        dialect: &Dialect,
        converted: impl FnOnce(&Catalog),
    ) -> Arc<Catalog> {
        let mut kept = self.0.lock();
        if let Some((of, catalog)) = &*kept
            && Arc::ptr_eq(of, tools)
        {
            return Arc::clone(catalog);
        }
        let last = kept.as_ref().map(|(_, catalog)| &**catalog);
        let catalog = Arc::new(Catalog::build_after(last, tools.tools(), dialect));
        converted(&catalog);
        *kept = Some((Arc::clone(tools), Arc::clone(&catalog)));
        catalog
    }
}

impl Catalog {
    /// Converts tools. One that can not be converted is left out and named; it costs nothing else.
    pub(crate) fn build(tools: &[Arc<dyn Tool>], dialect: &Dialect) -> Self {
        Self::build_after(None, tools, dialect)
    }

    /// Converts the tools that are not in the last catalog, which was made by the same dialect, under the same names.
    fn build_after(last: Option<&Self>, tools: &[Arc<dyn Tool>], dialect: &Dialect) -> Self {
        let (tools, mut left_out) = each_name_once(tools);
        let definitions: Vec<&ToolDefinition> =
            tools.iter().map(|tool| tool.definition()).collect();
        let longest = dialect.longest_name;
        let names = wire_names::assign(&definitions, longest, dialect.original_names);
        let mut named: Vec<_> = names.into_iter().zip(tools).collect();
        named.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut converted = Vec::with_capacity(named.len());
        let mut last = last.map_or(&[][..], Self::tools).iter().peekable();
        for (wire_name, tool) in named {
            // Both are sorted by these names.
            while last.next_if(|last| last.wire_name < wire_name).is_some() {}
            let sent = match last.next_if(|last| last.is(tool, &wire_name)) {
                Some(known) => Ok((Arc::clone(&known.json), known.tokens)),
                None => convert(tool.definition(), &wire_name, dialect),
            };
            match sent {
                Ok((json, tokens)) => converted.push(CatalogTool {
                    tool: Arc::clone(tool),
                    wire_name,
                    json,
                    tokens,
                }),
                Err(reason) => left_out.push(LeftOut::new(tool, reason)),
            }
        }
        left_out.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let mut by_listed_name: Vec<usize> = (0..converted.len()).collect();
        by_listed_name.sort_unstable_by_key(|place| converted[*place].listed_name());
        Self {
            by_listed_name,
            tools: converted,
            left_out,
            longest_name: longest,
            index: OnceLock::new(),
        }
    }

    /// All of them, sorted by their names here.
    pub fn tools(&self) -> &[CatalogTool] {
        &self.tools
    }

    /// Those that could not be converted.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The tool that the provider knows by exactly this name.
    pub fn by_wire_name(&self, name: &str) -> Option<&CatalogTool> {
        self.place_of(name).map(|place| &self.tools[place])
    }

    fn place_of(&self, wire_name: &str) -> Option<usize> {
        let wire_name_of = |tool: &CatalogTool| tool.wire_name.as_str().cmp(wire_name);
        self.tools.binary_search_by(wire_name_of).ok()
    }

    fn place_of_listed(&self, name: &str) -> Option<usize> {
        let name_at = |place: &usize| self.tools[*place].listed_name().cmp(name);
        let found = self.by_listed_name.binary_search_by(name_at).ok()?;
        Some(self.by_listed_name[found])
    }

    /// The tool that a model means by a name: models also write the name under which a tool is listed here, get the case
    /// wrong, or put before it what stood around the tools in their training.
    pub fn meant(&self, name: &str) -> Option<&CatalogTool> {
        const PREFIXES: [&str; 4] = ["functions", "default_api", "tools", "tool"];
        let name = name.trim();
        let found = self.alike(name);
        if found.is_some() {
            return found;
        }
        PREFIXES.iter().find_map(|prefix| {
            let rest = name.strip_prefix(prefix)?;
            self.alike(rest.strip_prefix(['.', ':', '/'])?.trim())
        })
    }

    /// The name under which the tool is listed that a model means; its own words where there is none.
    pub(crate) fn listed_name(&self, name: &str) -> String {
        let tool = self.meant(name);
        tool.map_or(name, CatalogTool::listed_name).to_owned()
    }

    fn alike(&self, name: &str) -> Option<&CatalogTool> {
        let exact = self.place_of(name).or_else(|| self.place_of_listed(name));
        if let Some(place) = exact {
            return self.tools.get(place);
        }
        let is_alike = |tool: &&CatalogTool| {
            let listed = tool.listed_name();
            tool.wire_name.eq_ignore_ascii_case(name) || listed.eq_ignore_ascii_case(name)
        };
        let mut alike = self.tools.iter().filter(is_alike);
        alike.next().filter(|_| alike.next().is_none())
    }

    /// The name under which the provider knows a tool, also one that is not there any more: history is replayed with it.
    pub fn wire_name<'a>(&'a self, listed_name: &'a str) -> Cow<'a, str> {
        if let Some(place) = self.place_of_listed(listed_name) {
            return Cow::Borrowed(&self.tools[place].wire_name);
        }
        let legal = wire_names::legal(listed_name, self.longest_name);
        match self.place_of(&legal) {
            // It must not seem to be a tool that it was not.
            Some(_) => Cow::Owned(wire_names::with_suffix(
                &legal,
                listed_name,
                self.longest_name,
            )),
            None => legal,
        }
    }

    pub(crate) fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let definitions = self.tools.iter().map(|tool| tool.tool.definition());
            Index::of(definitions)
        })
    }

    /// The places of tools that are listed or known to the provider by one of these names.
    pub(crate) fn places<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = usize> + 'a {
        names
            .iter()
            .filter_map(|name| self.place_of_listed(name).or_else(|| self.place_of(name)))
    }
}

fn each_name_once(tools: &[Arc<dyn Tool>]) -> (Vec<&Arc<dyn Tool>>, Vec<LeftOut>) {
    let mut seen = HashSet::with_capacity(tools.len());
    let (tools, twice): (Vec<_>, Vec<_>) = tools
        .iter()
        .partition(|tool| seen.insert(tool.definition().name()));
    let twice = twice.into_iter();
    let left_out =
        twice.map(|tool| LeftOut::new(tool, "another tool is listed under the same name"));
    (tools, left_out.collect())
}

/// What is sent, and about how many tokens that is. A converter that panics loses its tool and nothing else.
fn convert(
    definition: &ToolDefinition,
    wire_name: &str,
    dialect: &Dialect,
) -> Result<(Arc<RawValue>, usize), String> {
    let convert = AssertUnwindSafe(|| (dialect.convert)(definition, wire_name));
    let json = catch_unwind(convert)
        .unwrap_or_else(|_| Err("converting it failed unexpectedly".to_owned()))?;
    let tokens = tokens::estimate(json.get());
    Ok((json.into(), tokens))
}

impl Offer {
    /// All tools of a catalog.
    pub fn all(catalog: Arc<Catalog>) -> Self {
        Self {
            catalog,
            chosen: None,
        }
    }

    /// Some tools of a catalog, by their places in it.
    pub fn some(catalog: Arc<Catalog>, mut chosen: Vec<usize>) -> Self {
        chosen.sort_unstable();
        chosen.dedup();
        Self {
            catalog,
            chosen: Some(chosen),
        }
    }

    /// Where they come from.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.chosen {
            Some(chosen) => chosen.len(),
            None => self.catalog.tools.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tools, in order.
    pub fn iter(&self) -> impl Iterator<Item = &CatalogTool> {
        let all = self.catalog.tools.iter().filter(|_| self.chosen.is_none());
        let chosen = self.chosen.iter().flatten();
        all.chain(chosen.map(|index| &self.catalog.tools[*index]))
    }

    /// About how many tokens they take.
    pub fn tokens(&self) -> usize {
        self.iter().map(|tool| tool.tokens).sum()
    }
}

impl Serialize for Offer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        for tool in self.iter() {
            list.serialize_element(&*tool.json)?;
        }
        list.end()
    }
}
