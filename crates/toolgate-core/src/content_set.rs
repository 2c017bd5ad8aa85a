//! A snapshot of all content, with the names and URIs it is offered under.

use std::borrow::Cow;
use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::Value;

use crate::content_uri::{encode, is_web, ownable_scheme, split_server, with_server};
use crate::{ContentSource, ToolSource, display_name};

/// A snapshot of the content of all sources. Like a [`ToolSet`](crate::ToolSet), it never changes.
#[derive(Default)]
pub struct ContentSet {
    sources: Vec<ContentSource>,
    by_server: HashMap<String, usize>,
    // The source that owns the URIs of a scheme.
    schemes: HashMap<String, usize>,
    // By the name a prompt is listed under: its source, and its place in the source's list.
    prompts: IndexMap<String, (usize, usize)>,
}

/// A prompt with the name it is listed under.
#[derive(Clone, Copy)]
pub struct ListedPrompt<'a> {
    pub name: &'a str,
    pub owner: &'a ContentSource,
    /// The entry as its source lists it, with the source's own name.
    pub entry: &'a Value,
}

/// A resource or a resource template with the URI it is offered under.
pub struct ListedResource<'a> {
    pub uri: Cow<'a, str>,
    pub owner: &'a ContentSource,
    /// The entry as its source lists it, with the source's own URI.
    pub entry: &'a Value,
}

impl ContentSet {
    pub(crate) fn new(mut sources: Vec<ContentSource>) -> Self {
        sources.sort_by_key(|source| source.rank);
        let mut set = Self::default();
        for (index, source) in sources.iter().enumerate() {
            let name = encode(&source_name(&source.source)).into_owned();
            set.by_server.entry(name).or_insert(index);
            let resources = uris(&source.content.resources, "uri");
            let templates = uris(&source.content.templates, "uriTemplate");
            let skills = uris(&source.content.skills, "uri");
            for (uri, _) in resources.chain(templates).chain(skills) {
                if let Some(scheme) = ownable_scheme(uri) {
                    set.schemes.entry(scheme.into_owned()).or_insert(index);
                }
            }
        }
        set.sources = sources;
        set.name_prompts();
        set
    }

    /// The first source in rank keeps a prompt's name; the others list theirs as
    /// `<server>__<prompt>`, as with tools. A prompt whose own name looks like another server's
    /// qualified name (`b__plan` on server `a`) is qualified too.
    fn name_prompts(&mut self) {
        for (source_index, source) in self.sources.iter().enumerate() {
            for (prompt_index, entry) in source.content.prompts.iter().enumerate() {
                let Some(own_name) = entry["name"].as_str() else {
                    continue;
                };
                let looks_like_other_servers = own_name.match_indices("__").any(|(end, _)| {
                    let named = self.by_server.get(&*encode(&own_name[..end]));
                    named.is_some_and(|named| *named != source_index)
                });
                let owner_index = self.prompts.get(own_name).map(|(owner, _)| *owner);
                // A source that lists a name twice offers the first entry only.
                if owner_index == Some(source_index) {
                    continue;
                }
                let name = match owner_index.is_some() || looks_like_other_servers {
                    true => format!("{}__{own_name}", source_name(&source.source)),
                    false => own_name.to_owned(),
                };
                self.prompts
                    .entry(name)
                    .or_insert((source_index, prompt_index));
            }
        }
    }

    /// All sources with content, in the order of rank.
    pub fn sources(&self) -> &[ContentSource] {
        &self.sources
    }

    pub fn source(&self, source: &ToolSource) -> Option<&ContentSource> {
        self.sources.iter().find(|entry| entry.source == *source)
    }

    pub fn resources(&self) -> impl Iterator<Item = ListedResource<'_>> {
        self.list_resources(|source| uris(&source.content.resources, "uri"))
    }

    /// The resource templates; the URI of each is its URI template.
    pub fn templates(&self) -> impl Iterator<Item = ListedResource<'_>> {
        self.list_resources(|source| uris(&source.content.templates, "uriTemplate"))
    }

    /// The skills; the URI of each is that of its `SKILL.md`.
    pub fn skills(&self) -> impl Iterator<Item = ListedResource<'_>> {
        self.list_resources(|source| uris(&source.content.skills, "uri"))
    }

    pub fn prompts(&self) -> impl Iterator<Item = ListedPrompt<'_>> {
        self.prompts
            .iter()
            .map(|(name, place)| self.prompt(name, *place))
    }

    /// Finds a prompt by the name it is listed under, or by `<server>__<prompt>`.
    pub fn find_prompt(&self, name: &str) -> Option<ListedPrompt<'_>> {
        if let Some((name, place)) = self.prompts.get_key_value(name) {
            return Some(self.prompt(name, *place));
        }
        let mut qualified = self.prompts();
        qualified.find(|prompt| {
            let server = source_name(&prompt.owner.source);
            let own = name
                .strip_prefix(&*server)
                .and_then(|rest| rest.strip_prefix("__"));
            own.is_some() && prompt.entry["name"].as_str() == own
        })
    }

    /// The source that a URI addresses, and the URI as that source knows it.
    pub fn resolve<'s, 'u>(&'s self, uri: &'u str) -> Option<(&'s ContentSource, Cow<'u, str>)> {
        let (index, own) = match split_server(uri) {
            Some((server, own)) => (self.by_server.get(server)?, own),
            None => (
                self.schemes.get(&*ownable_scheme(uri)?)?,
                Cow::Borrowed(uri),
            ),
        };
        Some((&self.sources[*index], own))
    }

    /// The address under which clients find a URI or a URI template of a source.
    pub fn offered_uri<'u>(&self, source: &ToolSource, uri: &'u str) -> Cow<'u, str> {
        let index = self
            .sources
            .iter()
            .position(|entry| entry.source == *source);
        match ownable_scheme(uri) {
            Some(scheme) if index.is_some() && self.schemes.get(&*scheme).copied() == index => {
                Cow::Borrowed(uri)
            }
            _ => Cow::Owned(with_server(&source_name(source), uri)),
        }
    }

    /// Like [`offered_uri`](Self::offered_uri), for a URI in a result. A link to the web stays as
    /// it is. A source without `resources/read` can't serve its own links, so they stay as they
    /// are; a link into another source's scheme must not be resolved there.
    pub fn linked_uri<'u>(&self, source: &ToolSource, uri: &'u str) -> Cow<'u, str> {
        let scheme = ownable_scheme(uri);
        let owner = scheme
            .as_deref()
            .and_then(|scheme| self.schemes.get(scheme));
        let can_read = self
            .source(source)
            .is_some_and(|entry| entry.content.access.read_resource.is_some());
        let is_owned_by_other = owner.is_some_and(|owner| self.sources[*owner].source != *source);
        match scheme.as_deref() {
            Some(scheme) if is_web(scheme) => Cow::Borrowed(uri),
            Some(_) if !can_read && !is_owned_by_other => Cow::Borrowed(uri),
            _ => self.offered_uri(source, uri),
        }
    }

    fn prompt<'a>(&'a self, name: &'a str, (at, place): (usize, usize)) -> ListedPrompt<'a> {
        let owner = &self.sources[at];
        ListedPrompt {
            name,
            owner,
            entry: &owner.content.prompts[place],
        }
    }

    fn list_resources<'a, I: Iterator<Item = (&'a str, &'a Value)>>(
        &'a self,
        entries: impl Fn(&'a ContentSource) -> I,
    ) -> impl Iterator<Item = ListedResource<'a>> {
        self.sources.iter().flat_map(move |owner| {
            entries(owner).map(move |(uri, entry)| ListedResource {
                uri: self.offered_uri(&owner.source, uri),
                owner,
                entry,
            })
        })
    }
}

fn uris<'a>(entries: &'a [Value], key: &'static str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let uri = move |entry: &'a Value| Some((entry[key].as_str()?, entry));
    entries.iter().filter_map(uri)
}

/// The name that addresses a source in URIs and in names of prompts.
fn source_name(source: &ToolSource) -> Cow<'_, str> {
    match source {
        ToolSource::Mcp(server) => display_name(server),
        local => Cow::Owned(local.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{ContentMethod, FunctionTool, SourceContent, ToolManager, ToolRank};

    fn server(name: &str) -> ToolSource {
        ToolSource::Mcp(name.to_owned())
    }

    fn add(manager: &ToolManager, name: &str, rank: usize, uris: &[&str], prompts: &[&str]) {
        let mut content = SourceContent {
            resources: uris.iter().map(|uri| json!({ "uri": uri })).collect(),
            prompts: prompts.iter().map(|name| json!({ "name": name })).collect(),
            ..SourceContent::default()
        };
        let definition = ContentMethod::ReadResource
            .definition(server(name))
            .build()
            .unwrap();
        content.access.read_resource = Some(Arc::new(FunctionTool::mock(
            definition,
            json!({ "contents": [] }),
        )));
        manager.replace_content(
            &server(name),
            ToolRank::Server(rank),
            Some(Arc::new(content)),
        );
    }

    #[test]
    fn a_scheme_belongs_to_the_first_source_and_others_are_addressed_by_name() {
        let manager = ToolManager::new();
        add(&manager, "b", 1, &["file:///x", "notes:1"], &[]);
        add(
            &manager,
            "a",
            0,
            &["FILE:///x", "toolgate://b/notes:1"],
            &[],
        );
        let content = manager.content();
        let offered: Vec<String> = content.resources().map(|it| it.uri.into_owned()).collect();
        assert_eq!(
            offered,
            [
                "FILE:///x",
                "toolgate://a/toolgate://b/notes:1",
                "toolgate://b/file:///x",
                "notes:1",
            ]
        );
        let owners = ["a", "a", "b", "b"];
        for (address, owner) in offered.iter().zip(owners) {
            let (source, own) = content.resolve(address).unwrap();
            assert_eq!(source.source, server(owner), "{address}");
            assert_eq!(content.offered_uri(&source.source, &own), address.as_str());
        }
        for nobody in ["other:1", "toolgate://c/x:1", "no uri", ""] {
            assert!(content.resolve(nobody).is_none(), "{nobody}");
        }
    }

    #[test]
    fn links_in_results_lead_to_their_server_or_to_the_web() {
        let manager = ToolManager::new();
        add(
            &manager,
            "a",
            0,
            &["file:///x", "https://example.org/a"],
            &[],
        );
        add(&manager, "b", 1, &["notes:1"], &[]);
        let content = manager.content();
        for (source, uri, linked) in [
            ("a", "file:///y", "file:///y"),
            ("b", "file:///y", "toolgate://b/file:///y"),
            ("b", "https://example.org/b", "https://example.org/b"),
            ("b", "memo:1", "toolgate://b/memo:1"),
            ("tools-only", "memo:1", "memo:1"),
            ("tools-only", "notes:1", "toolgate://tools-only/notes:1"),
        ] {
            assert_eq!(content.linked_uri(&server(source), uri), linked);
        }
    }

    #[test]
    fn clashing_prompts_are_prefixed_with_their_server() {
        let manager = ToolManager::new();
        add(&manager, "a", 0, &[], &["review", "b__plan", "review"]);
        add(&manager, "b", 1, &[], &["review", "plan"]);
        let content = manager.content();
        let names: Vec<&str> = content.prompts().map(|prompt| prompt.name).collect();
        assert_eq!(names, ["review", "a__b__plan", "b__review", "plan"]);
        for (name, owner) in [
            ("review", "a"),
            ("b__review", "b"),
            ("b__plan", "b"),
            ("a__review", "a"),
            ("plan", "b"),
        ] {
            let found = content.find_prompt(name).unwrap();
            assert_eq!(found.owner.source, server(owner), "{name}");
        }
        assert!(content.find_prompt("other").is_none());
        manager.replace_content(&server("a"), ToolRank::Server(0), None);
        let content = manager.content();
        assert_eq!(
            content.find_prompt("review").unwrap().owner.source,
            server("b")
        );
    }
}
