//! Decides which servers a call needs.

use toolgate_core::ToolManager;
use toolgate_mcp::{ServerHealthHandler, ToolCatalog};

use crate::config::{Config, ConfiguredServer};

/// The servers that a call could need. A local tool needs only those that override local tools, or
/// all if it reports on servers or their resources. `<server>__<tool>` needs that server. Any other
/// name needs all, because any server may have it, or a name that the policy allows.
pub(crate) fn needed<'c>(
    config: &'c Config,
    manager: &ToolManager,
    tool: &str,
) -> Vec<&'c ConfiguredServer> {
    let is_local = manager
        .find(tool)
        .is_some_and(|found| found.definition().name() == tool);
    let is_of = |server: &&ConfiguredServer| {
        let rest = tool.strip_prefix(server.settings.name.as_str());
        rest.is_some_and(|rest| rest.starts_with("__"))
    };
    let all = config.servers.iter();
    let needs_all =
        config.uses_handler(tool, ServerHealthHandler::NAME) || config.is_resource_tool(tool);
    if is_local && !needs_all {
        return all.filter(|server| server.settings.overrides).collect();
    }
    let named: Vec<_> = all.clone().filter(is_of).collect();
    // A bare name in an allow list means the tool that is listed under it, which
    // depends on all servers.
    match named.is_empty() || !config.policy.allows_all() {
        true => all.collect(),
        false => named,
    }
}

/// Those of the [`needed`] servers that decide one call. If a remembered server offers the name,
/// others can only take it by overriding, so their lists, which may be long, aren't read.
pub(crate) fn owners<'c>(
    config: &'c Config,
    manager: &ToolManager,
    catalog: &ToolCatalog,
    tool: &str,
) -> Vec<&'c ConfiguredServer> {
    let needed = needed(config, manager, tool);
    // Only a plain name is sure to be listed unchanged.
    let is_plain = !tool.contains("__") && !tool.contains('\\');
    if manager.find(tool).is_some() || !is_plain || !config.policy.allows_all() {
        return needed;
    }
    let has_it = |server: &&&ConfiguredServer| {
        let settings = &server.settings;
        !settings.disabled && catalog.lists_tool(settings, tool)
    };
    let owners: Vec<&ConfiguredServer> = needed.iter().filter(has_it).copied().collect();
    let is_denied = |server: &&ConfiguredServer| {
        let mut deny = config.policy.deny.iter();
        deny.any(|pattern| pattern.matches_name(Some(&server.settings.name), tool))
    };
    // A denied tool isn't found, and the error suggests similar names of all tools.
    if owners.is_empty() || owners.iter().any(is_denied) {
        return needed;
    }
    let is_owner = |server: &ConfiguredServer| {
        let mut owners = owners.iter();
        owners.any(|owner| owner.settings.name == server.settings.name)
    };
    let decides = |server: &&ConfiguredServer| server.settings.overrides || is_owner(server);
    needed.into_iter().filter(decides).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::{Value, json};
    use tempfile::TempDir;
    use toolgate_mcp::{Servers, ServersOptions};

    use super::*;
    use crate::config::{ConfigDocument, ConfigReadOptions, SecretScope};
    use crate::servers::settings;
    use crate::wiring;

    struct OwnersFixture {
        config: Config,
        folder: TempDir,
    }

    impl OwnersFixture {
        /// A server's entry holds what it listed, under `listed`; one without has never been seen.
        fn new(servers: &Value, policy: &Value) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let mut entries = servers.clone();
            for (_, entry) in entries.as_object_mut().unwrap() {
                entry["command"] = json!("server");
                entry.as_object_mut().unwrap().remove("listed");
            }
            let text = json!({ "mcpServers": entries, "policy": policy }).to_string();
            let document = ConfigDocument::parse(Path::new("/f/t.json"), text.as_bytes()).unwrap();
            let config = Config::resolve(
                document,
                ConfigReadOptions::new(&|_| None, SecretScope::Names),
            )
            .unwrap();
            for server in &config.servers {
                let names = servers[&server.settings.name]["listed"].as_array();
                let Some(names) = names else { continue };
                let tool = |name: &Value| json!({ "hash": "", "definition": { "name": name, "inputSchema": { "type": "object" } } });
                let tools: Vec<Value> = names.iter().map(tool).collect();
                let identity = server.settings.identity.clone().unwrap();
                for (extension, tools) in [("json", json!(tools)), ("agreed", json!([]))] {
                    let stored = json!({ "version": 2, "server": "", "tools": tools });
                    let path = folder.path().join(format!("{identity}.{extension}"));
                    std::fs::write(path, stored.to_string()).unwrap();
                }
            }
            Self { config, folder }
        }

        fn catalog(&self) -> ToolCatalog {
            ToolCatalog::new(self.folder.path())
        }

        fn owners(&self, tool: &str) -> Vec<&ConfiguredServer> {
            let manager = wiring::build_tools(&self.config).manager;
            owners(&self.config, &manager, &self.catalog(), tool)
        }

        /// Which tool a call finds if these servers are known, and whether it may run.
        fn found(&self, servers: Vec<&ConfiguredServer>, tool: &str) -> Option<(String, bool)> {
            let manager = wiring::build_tools(&self.config).manager;
            let mut options = ServersOptions::default();
            options.catalog = self.catalog();
            options.on_demand = true;
            let all = Servers::new(Arc::clone(&manager), options);
            all.apply(settings(servers));
            let found = manager.find(tool)?;
            let definition = found.definition();
            let source = definition.source().to_string();
            Some((source, definition.withheld().is_none()))
        }
    }

    #[tokio::test]
    async fn loading_only_owners_finds_the_same_tools() {
        let plain = json!({ "a": { "listed": ["x"] }, "b": { "listed": ["y"] }, "c": {} });
        let clash =
            json!({ "a": { "listed": ["x"] }, "b": { "listed": ["x"] }, "c": { "listed": ["y"] } });
        let overriding = json!({ "b": { "listed": ["x"] }, "c": {}, "o": { "override": true },
            "p": { "override": true, "listed": ["x"] } });
        let choosy = json!({ "a": { "listed": ["x"], "excludedTools": ["x"] }, "b": { "listed": ["x"] },
            "c": { "listed": ["x"], "disabled": true } });
        let blocked = json!({ "a": { "listed": ["x"], "env": { "K": "${NONE}" } }, "b": { "listed": ["x"] }, "c": {} });
        let pinned = json!({ "a": { "listed": ["x"], "pin": "ask" }, "b": { "listed": ["x"] }, "c": { "listed": ["y"] } });
        let absent = json!({ "a": { "listed": ["x"], "disabled": true }, "b": {} });
        let local =
            json!({ "a": { "listed": ["echo"] }, "b": { "override": true, "listed": ["echo"] } });
        let long = json!({ "a": { "listed": ["b__x"] }, "b": { "listed": ["x"] }, "c": { "listed": ["b__x"] } });
        let none = json!({});
        for (servers, policy, tool, expected) in [
            (&plain, &none, "y", "b"),
            (&plain, &none, "b__y", "b"),
            (&plain, &none, "z", "a b c"),
            (&plain, &json!({ "allow": ["y"] }), "y", "a b c"),
            (&plain, &json!({ "deny": ["b/y"] }), "y", "a b c"),
            (&plain, &json!({ "deny": ["x"], "ask": ["y"] }), "y", "b"),
            (&clash, &none, "x", "a b"),
            (&overriding, &none, "x", "b o p"),
            (&choosy, &none, "x", "b"),
            (&blocked, &none, "x", "a b"),
            (&pinned, &none, "x", "a b"),
            (&absent, &none, "x", "a b"),
            (&local, &none, "echo", "b"),
            (&long, &none, "b__x", "b"),
        ] {
            let home = OwnersFixture::new(servers, policy);
            let owners = home.owners(tool);
            let names: Vec<&str> = owners.iter().map(|one| &*one.settings.name).collect();
            assert_eq!(
                names.join(" "),
                expected,
                "{tool} of {servers} under {policy}"
            );
            let all = home.config.servers.iter().collect();
            assert_eq!(
                home.found(owners, tool),
                home.found(all, tool),
                "{tool} of {servers}"
            );
        }
    }
}
