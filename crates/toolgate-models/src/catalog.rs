//! The tools in one provider's form: names it accepts, schemas it understands, ready to be sent.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use serde_json::value::RawValue;
use toolgate_core::{Tool, ToolDefinition};

use crate::ToolList;

/// All tools of a list in one provider's form, sorted by name so that a prompt cache sees the same prefix every time.
pub struct Catalog {
    tools: Vec<CatalogTool>,
    by_wire_name: HashMap<String, usize>,
    by_listed_name: HashMap<String, usize>,
    left_out: Vec<LeftOut>,
}

/// One tool in a provider's form.
pub struct CatalogTool {
    /// Legal for the provider, unique in the catalog.
    pub wire_name: String,
    /// The tool itself.
    pub tool: Arc<dyn Tool>,
    /// What is sent.
    pub json: Box<RawValue>,
    /// About how many tokens that is.
    pub tokens: usize,
}

/// A tool that this provider can not be offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The name it is listed under.
    pub name: String,
    /// What stands in the way.
    pub reason: String,
}

/// What a provider accepts. The functions are pure: a tool goes in, JSON comes out.
pub(crate) struct Dialect {
    /// The longest name it takes.
    pub(crate) longest_name: usize,
    /// True if a tool of an MCP server goes out under its name there, as far as that is unique.
    pub(crate) original_names: bool,
    /// The tool as it is sent, under this name.
    pub(crate) convert: fn(&ToolDefinition, wire_name: &str) -> Result<Box<RawValue>, String>,
}

/// Tools that a model may use in one round: all of a catalog or the best of it, in the catalog's order.
pub struct Offer {
    catalog: Arc<Catalog>,
    chosen: Option<Vec<usize>>,
}

/// Keeps the catalog of the last list of tools, so that a list is converted once.
#[derive(Default)]
pub(crate) struct CatalogCache(Mutex<Option<(Arc<ToolList>, Arc<Catalog>)>>);

impl CatalogCache {
    pub(crate) fn get(&self, tools: &Arc<ToolList>, dialect: &Dialect) -> Arc<Catalog> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, catalog)) = &*kept
            && Arc::ptr_eq(of, tools)
        {
            return Arc::clone(catalog);
        }
        let catalog = Arc::new(Catalog::build(tools.tools(), dialect));
        *kept = Some((Arc::clone(tools), Arc::clone(&catalog)));
        catalog
    }
}

impl Catalog {
    /// Converts tools. One that can not be converted is left out and named; it costs nothing else.
    pub(crate) fn build(tools: &[Arc<dyn Tool>], dialect: &Dialect) -> Self {
        let _ = (tools, dialect);
        Self {
            tools: Vec::new(),
            by_wire_name: HashMap::new(),
            by_listed_name: HashMap::new(),
            left_out: Vec::new(),
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

    /// The tool that a model means by a name.
    pub fn by_wire_name(&self, name: &str) -> Option<&CatalogTool> {
        self.by_wire_name.get(name).map(|index| &self.tools[*index])
    }

    /// The name under which the provider knows a tool, also one that is not there any more: history is replayed with it.
    pub fn wire_name<'a>(&'a self, listed_name: &'a str) -> Cow<'a, str> {
        match self.by_listed_name.get(listed_name) {
            Some(index) => Cow::Borrowed(&self.tools[*index].wire_name),
            None => Cow::Borrowed(listed_name),
        }
    }
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
    /// The list as it is sent.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        for tool in self.iter() {
            list.serialize_element(&tool.json)?;
        }
        list.end()
    }
}
