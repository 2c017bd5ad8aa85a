//! A tool list converted for one provider: legal names and accepted schemas, ready to send.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde::Serialize;
use serde::ser::Serializer;
use serde_json::value::RawValue;
use toolgate_core::{Tool, ToolDefinition, wire_names};

use crate::ranking::ToolIndex;
use crate::{ToolList, tokens};

/// All tools of a list, converted for one provider.
///
/// Sorted by wire name, so that requests begin with the same bytes and prompt caches work.
pub struct Catalog {
    tools: Vec<CatalogTool>,
    by_listed_name: Vec<usize>,
    excluded: Vec<ExcludedTool>,
    longest_name: usize,
    index: OnceLock<ToolIndex>,
}

/// A tool converted for one provider.
pub struct CatalogTool {
    /// Legal for the provider and unique in the catalog.
    pub wire_name: String,
    pub tool: Arc<dyn Tool>,
    /// The tool as the provider's API wants it.
    pub json: Arc<RawValue>,
    /// Estimated size of `json`.
    pub tokens: usize,
}

impl CatalogTool {
    fn listed_name(&self) -> &str {
        self.tool.definition().name()
    }

    fn is_same_tool(&self, tool: &Arc<dyn Tool>, wire_name: &str) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.tool), Arc::as_ptr(tool)) && self.wire_name == wire_name
    }
}

/// A tool that can't be offered to a provider, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludedTool {
    /// The listed name, not a wire name.
    pub name: String,
    pub reason: String,
}

impl ExcludedTool {
    fn new(tool: &Arc<dyn Tool>, reason: impl Into<String>) -> Self {
        Self {
            name: tool.definition().name().to_owned(),
            reason: reason.into(),
        }
    }
}

/// How one provider wants its tools.
pub(crate) struct ToolDialect {
    pub(crate) longest_name: usize,
    /// Whether tools of an MCP server keep their original names where those are unique.
    pub(crate) original_names: bool,
    /// Must be pure: results are reused as long as the tool and its wire name stay the same.
    pub(crate) convert: fn(&ToolDefinition, wire_name: &str) -> Result<Box<RawValue>, String>,
}

/// The tools of a catalog that are offered to a model in one round, in the catalog's order.
pub struct OfferedTools {
    catalog: Arc<Catalog>,
    chosen: Vec<usize>,
}

/// Caches the catalog of the latest tool list. When the list changes, only new tools are converted.
#[derive(Default)]
pub(crate) struct CatalogCache(Mutex<Option<(Arc<ToolList>, Arc<Catalog>)>>);

impl CatalogCache {
    pub(crate) fn get(&self, tools: &Arc<ToolList>, dialect: &ToolDialect) -> Arc<Catalog> {
        self.get_or_convert(tools, dialect, |_| {})
    }

    /// Like [`get`](Self::get), but calls `converted` with each catalog that had to be built.
    pub(crate) fn get_or_convert(
        &self,
        tools: &Arc<ToolList>,
        dialect: &ToolDialect,
        converted: impl FnOnce(&Catalog),
    ) -> Arc<Catalog> {
        let mut cached = self.0.lock();
        if let Some((list, catalog)) = &*cached
            && Arc::ptr_eq(list, tools)
        {
            return Arc::clone(catalog);
        }
        let last = cached.as_ref().map(|(_, catalog)| &**catalog);
        let catalog = Arc::new(Catalog::build_after(last, tools.tools(), dialect));
        converted(&catalog);
        *cached = Some((Arc::clone(tools), Arc::clone(&catalog)));
        catalog
    }
}

impl Catalog {
    pub(crate) fn build(tools: &[Arc<dyn Tool>], dialect: &ToolDialect) -> Self {
        Self::build_after(None, tools, dialect)
    }

    // Reuses tools that the last catalog has under the same wire name. Both must have one dialect.
    fn build_after(last: Option<&Self>, tools: &[Arc<dyn Tool>], dialect: &ToolDialect) -> Self {
        let (tools, mut excluded) = split_duplicates(tools);
        let definitions: Vec<&ToolDefinition> =
            tools.iter().map(|tool| tool.definition()).collect();
        let longest = dialect.longest_name;
        let names = wire_names::assign(&definitions, longest, dialect.original_names);
        let mut named: Vec<_> = names.into_iter().zip(tools).collect();
        named.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut converted = Vec::with_capacity(named.len());
        let mut last = last.map_or(&[][..], Self::tools).iter().peekable();
        for (wire_name, tool) in named {
            // Both lists are sorted by wire name, so one pass finds the tools to reuse.
            while last.next_if(|last| last.wire_name < wire_name).is_some() {}
            let sent = match last.next_if(|last| last.is_same_tool(tool, &wire_name)) {
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
                Err(reason) => excluded.push(ExcludedTool::new(tool, reason)),
            }
        }
        excluded.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let mut by_listed_name: Vec<usize> = (0..converted.len()).collect();
        by_listed_name.sort_unstable_by_key(|position| converted[*position].listed_name());
        Self {
            by_listed_name,
            tools: converted,
            excluded,
            longest_name: longest,
            index: OnceLock::new(),
        }
    }

    pub fn tools(&self) -> &[CatalogTool] {
        &self.tools
    }

    pub fn excluded(&self) -> &[ExcludedTool] {
        &self.excluded
    }

    pub fn by_wire_name(&self, name: &str) -> Option<&CatalogTool> {
        self.position_of(name).map(|position| &self.tools[position])
    }

    fn position_of(&self, wire_name: &str) -> Option<usize> {
        let wire_name_of = |tool: &CatalogTool| tool.wire_name.as_str().cmp(wire_name);
        self.tools.binary_search_by(wire_name_of).ok()
    }

    fn position_of_listed(&self, name: &str) -> Option<usize> {
        let name_at = |position: &usize| self.tools[*position].listed_name().cmp(name);
        let found = self.by_listed_name.binary_search_by(name_at).ok()?;
        Some(self.by_listed_name[found])
    }

    /// Finds the tool that a model means, by its wire name or a common mistake: the listed name,
    /// the wrong case, or a namespace from the model's training, such as `functions.`.
    pub fn resolve_name(&self, name: &str) -> Option<&CatalogTool> {
        const PREFIXES: [&str; 4] = ["functions", "default_api", "tools", "tool"];
        let name = name.trim();
        let found = self.find_by_any_name(name);
        if found.is_some() {
            return found;
        }
        PREFIXES.iter().find_map(|prefix| {
            let rest = name.strip_prefix(prefix)?;
            self.find_by_any_name(rest.strip_prefix(['.', ':', '/'])?.trim())
        })
    }

    /// The listed name of the tool that a model means, or the name as written if there is none.
    pub(crate) fn listed_name(&self, name: &str) -> String {
        let tool = self.resolve_name(name);
        tool.map_or(name, CatalogTool::listed_name).to_owned()
    }

    fn find_by_any_name(&self, name: &str) -> Option<&CatalogTool> {
        let exact = self
            .position_of(name)
            .or_else(|| self.position_of_listed(name));
        if let Some(position) = exact {
            return self.tools.get(position);
        }
        let is_alike = |tool: &&CatalogTool| {
            let listed = tool.listed_name();
            tool.wire_name.eq_ignore_ascii_case(name) || listed.eq_ignore_ascii_case(name)
        };
        let mut alike = self.tools.iter().filter(is_alike);
        alike.next().filter(|_| alike.next().is_none())
    }

    /// The wire name of a tool by its listed name. Also works for a tool that no longer exists,
    /// because history is replayed with it.
    pub fn wire_name<'a>(&'a self, listed_name: &'a str) -> Cow<'a, str> {
        if let Some(position) = self.position_of_listed(listed_name) {
            return Cow::Borrowed(&self.tools[position].wire_name);
        }
        let legal = wire_names::to_legal(listed_name, self.longest_name);
        match self.position_of(&legal) {
            // A tool that no longer exists must not look like one that does.
            Some(_) => Cow::Owned(wire_names::with_suffix(
                &legal,
                listed_name,
                self.longest_name,
            )),
            None => legal,
        }
    }

    pub(crate) fn index(&self) -> &ToolIndex {
        self.index.get_or_init(|| {
            let definitions = self.tools.iter().map(|tool| tool.tool.definition());
            ToolIndex::build(definitions)
        })
    }

    pub(crate) fn positions_of<'a>(
        &'a self,
        names: &'a [String],
    ) -> impl Iterator<Item = usize> + 'a {
        names.iter().filter_map(|name| {
            self.position_of_listed(name)
                .or_else(|| self.position_of(name))
        })
    }
}

fn split_duplicates(tools: &[Arc<dyn Tool>]) -> (Vec<&Arc<dyn Tool>>, Vec<ExcludedTool>) {
    let mut seen = HashSet::with_capacity(tools.len());
    let (tools, twice): (Vec<_>, Vec<_>) = tools
        .iter()
        .partition(|tool| seen.insert(tool.definition().name()));
    let twice = twice.into_iter();
    let excluded =
        twice.map(|tool| ExcludedTool::new(tool, "another tool is listed under the same name"));
    (tools, excluded.collect())
}

// A converter that panics must cost only its own tool.
fn convert(
    definition: &ToolDefinition,
    wire_name: &str,
    dialect: &ToolDialect,
) -> Result<(Arc<RawValue>, usize), String> {
    let convert = AssertUnwindSafe(|| (dialect.convert)(definition, wire_name));
    let json = catch_unwind(convert)
        .unwrap_or_else(|_| Err("converting it failed unexpectedly".to_owned()))?;
    let tokens = tokens::estimate(json.get());
    Ok((json.into(), tokens))
}

impl OfferedTools {
    pub fn all(catalog: Arc<Catalog>) -> Self {
        let chosen = (0..catalog.tools.len()).collect();
        Self { catalog, chosen }
    }

    /// Some tools of a catalog, by position, in any order.
    pub fn subset(catalog: Arc<Catalog>, mut chosen: Vec<usize>) -> Self {
        chosen.sort_unstable();
        chosen.dedup();
        Self { catalog, chosen }
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub fn len(&self) -> usize {
        self.chosen.len()
    }

    pub fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &CatalogTool> {
        self.chosen.iter().map(|index| &self.catalog.tools[*index])
    }

    /// Estimated tokens of all offered tools.
    pub fn tokens(&self) -> usize {
        self.iter().map(|tool| tool.tokens).sum()
    }
}

impl Serialize for OfferedTools {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|tool| &*tool.json))
    }
}
