//! A tool list in one provider's form: legal names and understandable schemas, ready to send.

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

/// All tools of a list in one provider's form, sorted by name so that a prompt cache sees the
/// same prefix every time.
pub struct Catalog {
    tools: Vec<CatalogTool>,
    by_listed_name: Vec<usize>,
    excluded: Vec<ExcludedTool>,
    longest_name: usize,
    index: OnceLock<ToolIndex>,
}

/// A tool in one provider's form.
pub struct CatalogTool {
    /// Legal for the provider and unique in the catalog.
    pub wire_name: String,
    pub tool: Arc<dyn Tool>,
    pub json: Arc<RawValue>,
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

/// What a provider accepts. `convert` is pure: a tool goes in, JSON comes out.
pub(crate) struct ToolDialect {
    pub(crate) longest_name: usize,
    /// Whether tools of an MCP server keep their original names where those are unique.
    pub(crate) original_names: bool,
    pub(crate) convert: fn(&ToolDefinition, wire_name: &str) -> Result<Box<RawValue>, String>,
}

/// Tools offered to a model in one round: a whole catalog, or the best of it
/// in the catalog's order.
pub struct OfferedTools {
    catalog: Arc<Catalog>,
    chosen: Vec<usize>,
}

/// Keeps the catalog of the last tool list. Each list is converted once, and of the next list only
/// the tools that are new.
#[derive(Default)]
pub(crate) struct CatalogCache(Mutex<Option<(Arc<ToolList>, Arc<Catalog>)>>);

impl CatalogCache {
    pub(crate) fn get(&self, tools: &Arc<ToolList>, dialect: &ToolDialect) -> Arc<Catalog> {
        self.get_or_convert(tools, dialect, |_| {})
    }

    /// Like [`get`](Self::get), but calls `converted` with each new catalog.
    pub(crate) fn get_or_convert(
        &self,
        tools: &Arc<ToolList>,
        dialect: &ToolDialect,
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
    pub(crate) fn build(tools: &[Arc<dyn Tool>], dialect: &ToolDialect) -> Self {
        Self::build_after(None, tools, dialect)
    }

    // Reuses tools that the last catalog has under the same name. It must have the same dialect.
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

    /// Finds the tool that a model means. Models also write the listed name, get the case wrong, or
    /// prepend a namespace from their training, such as `functions.`.
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

    /// The listed name of the tool that a model means, or the model's own word if there is none.
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

    /// The wire name of a tool, even of one that no longer exists: history is replayed with it.
    pub fn wire_name<'a>(&'a self, listed_name: &'a str) -> Cow<'a, str> {
        if let Some(position) = self.position_of_listed(listed_name) {
            return Cow::Borrowed(&self.tools[position].wire_name);
        }
        let legal = wire_names::to_legal(listed_name, self.longest_name);
        match self.position_of(&legal) {
            // A tool that is gone must not look like one that exists.
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

    /// Some tools of a catalog, by position. The order of `chosen` doesn't matter.
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

    pub fn tokens(&self) -> usize {
        self.iter().map(|tool| tool.tokens).sum()
    }
}

impl Serialize for OfferedTools {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|tool| &*tool.json))
    }
}
