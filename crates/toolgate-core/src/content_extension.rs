//! Extensions of MCP: which ones sources declare, and which source answers a request of one.

use serde_json::{Map, Value, json};

use crate::{
    ContentMethod, ContentRequest, ContentSet, ContentSource, Scope, ToolExecutor, ToolSource,
};

/// Why a request of an MCP extension can't be routed to exactly one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExtensionRequestError {
    #[error("no server that this caller may use has an extension for it")]
    NoOwner,
    #[error("several servers have an extension for it, and nothing says which one is meant")]
    SeveralOwners,
}

impl ContentSet {
    /// The extensions that the visible sources declare. Where several declare the same one, only
    /// the settings on which all of them agree are left, because a caller relies on them with each.
    pub fn declared_extensions(
        &self,
        is_visible: impl Fn(&ContentSource) -> bool,
    ) -> Map<String, Value> {
        let mut declared = Map::new();
        for source in self.sources().iter().filter(|source| is_visible(source)) {
            for (id, settings) in &source.content.extensions {
                let Some(Value::Object(agreed)) = declared.get_mut(id) else {
                    declared.insert(id.clone(), settings.clone());
                    continue;
                };
                agreed.retain(|key, value| settings.get(key) == Some(value));
            }
        }
        declared
    }
}

impl ToolExecutor {
    /// Finds the source to send a method of an extension to. Candidates declare an extension for
    /// which `is_shared` is true. If the method begins with the name of one of these extensions,
    /// only sources that declare it are candidates. Scope and policy are checked after that, so
    /// that a request meant for one server never reaches another.
    pub fn find_extension_request(
        &self,
        method: &str,
        params: &Value,
        scope: &Scope,
        is_shared: impl Fn(&str) -> bool,
    ) -> Result<ContentRequest, ExtensionRequestError> {
        let owner = self.find_extension_owner(method, scope, is_shared)?;
        let mut arguments = json!({ "method": method });
        if params.is_object() {
            arguments["params"] = params.clone();
        }
        Ok(self.extension_request(owner, method, arguments, scope))
    }

    /// Like [`find_extension_request`](Self::find_extension_request), for a notification. `name` is
    /// its method without `notifications/`.
    pub fn find_extension_notification(
        &self,
        (method, name): (&str, &str),
        params: &Value,
        scope: &Scope,
        is_shared: impl Fn(&str) -> bool,
    ) -> Result<ContentRequest, ExtensionRequestError> {
        let owner = self.find_extension_owner(name, scope, is_shared)?;
        let mut arguments = json!({ "method": method, "isNotification": true });
        if params.is_object() {
            arguments["params"] = params.clone();
        }
        Ok(self.extension_request(owner, method, arguments, scope))
    }

    /// True if a message of this name from the source may reach the caller: the source
    /// declares an extension for which `is_shared` is true, and the caller may use the
    /// extensions of the source. If the message begins with the name of one of the source's
    /// extensions, only that extension counts.
    pub fn may_get_extension_message(
        &self,
        source: &ToolSource,
        name: &str,
        scope: &Scope,
        is_shared: impl Fn(&str) -> bool,
    ) -> bool {
        let (content, rules) = (self.manager().content(), self.rules());
        let mut sources = content.sources().iter();
        let Some(owner) = sources.find(|owner| owner.source == *source) else {
            return false;
        };
        let declared = || owner.content.extensions.keys();
        let is_named = declared().any(|id| is_named_by_extension(id, name));
        let mut wanted = declared().filter(|id| !is_named || is_named_by_extension(id, name));
        wanted.any(|id| is_shared(id))
            && owner.is_offered(ContentMethod::CallExtension, &rules, scope)
    }

    fn find_extension_owner(
        &self,
        name: &str,
        scope: &Scope,
        is_shared: impl Fn(&str) -> bool,
    ) -> Result<ContentSource, ExtensionRequestError> {
        let (content, rules) = (self.manager().content(), self.rules());
        let sharing = |is_wanted: &dyn Fn(&str) -> bool| -> Vec<&ContentSource> {
            let shares =
                |source: &&ContentSource| source.content.extensions.keys().any(|id| is_wanted(id));
            content.sources().iter().filter(shares).collect()
        };
        let mut owners = sharing(&|id| is_shared(id) && is_named_by_extension(id, name));
        if owners.is_empty() {
            owners = sharing(&is_shared);
        }
        owners.retain(|owner| owner.is_offered(ContentMethod::CallExtension, &rules, scope));
        match owners.as_slice() {
            [] => Err(ExtensionRequestError::NoOwner),
            [owner] => Ok((*owner).clone()),
            _ => Err(ExtensionRequestError::SeveralOwners),
        }
    }
}

/// True if `message` begins with the extension's id, or with the last segment of it. The id
/// `com.example/catalog` matches `catalog`, `catalog/search` and `com.example/catalog/search`.
pub fn is_named_by_extension(id: &str, message: &str) -> bool {
    let name = id.rsplit_once('/').map_or(id, |(_, name)| name);
    let begins_with = |prefix: &str| {
        let rest = message.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    begins_with(id) || begins_with(name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{FunctionTool, SourceContent, ToolManager, ToolPattern, ToolRank};

    fn executor(sources: &[(&str, Value)]) -> ToolExecutor {
        let manager = ToolManager::new();
        for (rank, (name, extensions)) in sources.iter().enumerate() {
            let source = ToolSource::Mcp((*name).to_owned());
            let mut content = SourceContent {
                extensions: extensions.as_object().unwrap().clone(),
                ..SourceContent::default()
            };
            let definition = ContentMethod::CallExtension.definition(source.clone());
            let tool = FunctionTool::mock(definition.build().unwrap(), json!({}));
            content.access.call_extension = Some(Arc::new(tool));
            let content = Some(Arc::new(content));
            manager.replace_content(&source, ToolRank::Server(rank), content);
        }
        ToolExecutor::new(Arc::new(manager))
    }

    #[test]
    fn only_what_all_agree_on_is_declared() {
        let executor = executor(&[
            ("a", json!({ "x/one": { "k": 1, "l": [1] }, "x/two": {} })),
            ("b", json!({ "x/one": { "k": 2, "l": [1], "m": 3 } })),
            ("c", json!({ "x/one": {}, "x/three": { "n": 4 } })),
        ]);
        let content = executor.manager().content();
        let seen = |names: &[&str]| {
            let is_visible = |owner: &ContentSource| names.contains(&&*owner.source.to_string());
            Value::Object(content.declared_extensions(is_visible))
        };
        let names: Vec<String> = content
            .sources()
            .iter()
            .map(|it| it.source.to_string())
            .collect();
        let [a, b, c] = [0, 1, 2].map(|at| names[at].as_str());
        assert_eq!(
            seen(&[a]),
            json!({ "x/one": { "k": 1, "l": [1] }, "x/two": {} })
        );
        assert_eq!(seen(&[a, b]), json!({ "x/one": { "l": [1] }, "x/two": {} }));
        assert_eq!(
            seen(&[a, b, c]),
            json!({ "x/one": {}, "x/two": {}, "x/three": { "n": 4 } })
        );
        assert_eq!(seen(&[]), json!({}));
    }

    #[test]
    fn a_request_reaches_the_only_source_that_can_mean_it() {
        let executor = executor(&[
            ("a", json!({ "com.example/catalog": {} })),
            ("b", json!({ "com.example/orders": {} })),
            ("c", json!({ "org.other/orders": {} })),
        ]);
        let all: &[&str] = &[
            "com.example/catalog",
            "com.example/orders",
            "org.other/orders",
        ];
        let find = |method: &str, shared: &[&str], scope: &Scope| {
            let is_shared = |id: &str| shared.contains(&id);
            let found =
                executor.find_extension_request(method, &json!({ "q": 1 }), scope, is_shared);
            found.map(|request| {
                let expected = json!({ "method": method, "params": { "q": 1 } });
                assert_eq!(*request.arguments(), expected);
                request.owner().unwrap().source.clone()
            })
        };
        let mcp = |name: &str| Ok(ToolSource::Mcp(name.to_owned()));
        let everyone = Scope::default();
        assert_eq!(find("catalog/search", all, &everyone), mcp("a"));
        assert_eq!(find("com.example/orders/list", all, &everyone), mcp("b"));
        assert_eq!(
            find("orders/list", all, &everyone),
            Err(ExtensionRequestError::SeveralOwners)
        );
        assert_eq!(find("orders/list", &all[..2], &everyone), mcp("b"));
        assert_eq!(
            find("vendor/x", all, &everyone),
            Err(ExtensionRequestError::SeveralOwners)
        );
        assert_eq!(find("vendor/x", &all[..1], &everyone), mcp("a"));
        assert_eq!(
            find("catalog/search", &[], &everyone),
            Err(ExtensionRequestError::NoOwner)
        );
        // Another server doesn't get what its owner's scope withholds.
        let without = Scope::default().except(vec![ToolPattern::new("a/extensions/request")]);
        assert_eq!(
            find("catalog/search", &all[..1], &without),
            Err(ExtensionRequestError::NoOwner)
        );
        assert_eq!(
            find("catalog/search", &all[..2], &without),
            Err(ExtensionRequestError::NoOwner)
        );
    }

    #[test]
    fn a_message_reaches_only_callers_that_share_the_extension_it_is_named_by() {
        let executor = executor(&[
            (
                "a",
                json!({ "com.example/catalog": {}, "com.example/orders": {} }),
            ),
            ("b", json!({})),
        ]);
        let may = |source: &str, name: &str, shared: &[&str], scope: &Scope| {
            let source = ToolSource::Mcp(source.to_owned());
            executor.may_get_extension_message(&source, name, scope, |id| shared.contains(&id))
        };
        let (catalog, orders) = (&["com.example/catalog"][..], &["com.example/orders"][..]);
        let everyone = Scope::default();
        for (name, shared, expected) in [
            ("catalog/changed", catalog, true),
            ("catalog", catalog, true),
            ("com.example/catalog/changed", catalog, true),
            ("catalog/changed", orders, false),
            ("catalogue/changed", orders, true),
            ("vendor/changed", orders, true),
            ("vendor/changed", &[], false),
        ] {
            assert_eq!(
                may("a", name, shared, &everyone),
                expected,
                "{name} {shared:?}"
            );
        }
        assert!(!may("b", "catalog/changed", catalog, &everyone));
        assert!(!may("c", "catalog/changed", catalog, &everyone));
        let without = Scope::default().except(vec![ToolPattern::new("a/extensions/request")]);
        assert!(!may("a", "catalog/changed", catalog, &without));
    }
}
