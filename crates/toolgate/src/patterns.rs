//! Finds patterns in the configuration that match no tool. A misspelled pattern silently denies
//! nothing and asks about nothing.

use std::fmt;

use toolgate_core::text::escape;
use toolgate_core::{ToolDefinition, ToolPattern, ToolSet, ToolSource};
use toolgate_mcp::{ServerSettings, ServerState, ServerStatus, ToolCatalog};
use tracing::warn;

use crate::command_words::did_you_mean;
use crate::config::Config;
use crate::{servers, wiring};

// In these lists a name means every tool of that name, elsewhere only the tool that is listed under
// it.
const WITHHOLDING: [&str; 5] = [
    "policy.deny",
    "policy.ask",
    "policy.flow.untrusted",
    "policy.flow.private",
    "policy.flow.outward",
];

pub(crate) struct ToolName {
    /// `None` for a local tool.
    server: Option<String>,
    name: String,
    /// The name it is listed under, which allow lists compare. `None` while that isn't known.
    listed: Option<String>,
}

impl ToolName {
    pub(crate) fn from_definition(tool: &ToolDefinition) -> Self {
        let server = match tool.source() {
            ToolSource::Mcp(server) => Some(server.clone()),
            _ => None,
        };
        Self {
            server,
            name: tool.original_name().to_owned(),
            listed: Some(tool.name().to_owned()),
        }
    }

    fn all_of(tools: &ToolSet) -> Vec<Self> {
        let definitions = tools.iter().map(|tool| tool.definition());
        definitions.map(Self::from_definition).collect()
    }
}

/// A pattern that matches no tool. It displays as a sentence with a suggestion.
pub(crate) struct UnmatchedPattern {
    pub(crate) key: String,
    pub(crate) pattern: String,
    message: String,
}

impl fmt::Display for UnmatchedPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Patterns of the policy and of tokens, and names in `limits.perTool`, that match no tool. Skips
/// those for a server whose tools aren't known yet; the others mention such servers.
pub(crate) fn unmatched(
    config: &Config,
    tools: &ToolSet,
    servers: &[ServerStatus],
) -> Vec<UnmatchedPattern> {
    let names = ToolName::all_of(tools);
    let limits = config.limits.per_tool.keys();
    let limits = limits.filter(|name| tools.find(name).is_none());
    let limits = limits.map(|name| ("limits.perTool".to_owned(), name.clone()));
    let unknown = unknown_servers(config, servers);
    policy_patterns(config)
        .chain(token_patterns(config))
        .filter(|(key, text)| !matches_some(key, text, &names))
        .chain(limits)
        .filter(|(_, text)| !names_one_of(text, &unknown))
        .map(|(key, pattern)| UnmatchedPattern {
            message: message(&key, &pattern, &names, &unknown),
            key,
            pattern,
        })
        .collect()
}

/// Warns of policy patterns that match no local or remembered tool, for a command that makes one
/// call. Starts no server, and says nothing while the tools of one aren't known.
pub(crate) fn warn_of_unmatched_policy(config: &Config, tools: &wiring::ConfiguredTools) {
    let local = ToolName::all_of(&tools.manager.tools());
    for text in unmatched_policy(config, local, &servers::catalog()) {
        warn!("{text}");
    }
}

fn unmatched_policy(
    config: &Config,
    mut names: Vec<ToolName>,
    catalog: &ToolCatalog,
) -> Vec<String> {
    let unmatched = policy_patterns(config).filter(|(key, text)| !matches_some(key, text, &names));
    let mut unmatched: Vec<_> = unmatched.collect();
    if unmatched.is_empty() {
        // The usual case, which reads no file.
        return Vec::new();
    }
    let servers = config.servers.iter().map(|server| &server.settings);
    let (disabled, mut enabled): (Vec<_>, Vec<_>) = servers.partition(|server| server.disabled);
    unmatched.retain(|(_, text)| !names_one_of(text, &disabled));
    // Named servers come first: if all patterns are theirs, the files of the others aren't read.
    let is_named = |server: &ServerSettings| {
        unmatched
            .iter()
            .any(|(_, text)| names_one_of(text, &[server]))
    };
    enabled.sort_by_key(|server| !is_named(server));
    for server in enabled {
        if unmatched.is_empty() {
            break;
        }
        let Some(remembered) = catalog.recall_names(server) else {
            return Vec::new();
        };
        names.extend(remembered.into_iter().map(|name| ToolName {
            server: Some(server.name.clone()),
            name,
            listed: None,
        }));
        unmatched.retain(|(key, text)| !matches_some(key, text, &names));
    }
    let unmatched = unmatched.into_iter();
    unmatched
        .map(|(key, text)| message(&key, &text, &names, &[]))
        .collect()
}

fn policy_patterns(config: &Config) -> impl Iterator<Item = (String, String)> {
    let policy = &config.policy;
    let lists = [
        ("policy.allow", &policy.allow),
        ("policy.deny", &policy.deny),
        ("policy.ask", &policy.ask),
        ("policy.flow.untrusted", &policy.flow.untrusted),
        ("policy.flow.private", &policy.flow.private),
        ("policy.flow.outward", &policy.flow.outward),
    ];
    let lists = lists.into_iter();
    lists.flat_map(|(key, patterns)| {
        let texts = patterns.iter().map(ToString::to_string);
        texts.map(move |text| (key.to_owned(), text))
    })
}

fn token_patterns(config: &Config) -> impl Iterator<Item = (String, String)> {
    let tokens = config.serve.tokens.iter().enumerate();
    tokens.flat_map(|(index, token)| {
        let name = match token.name.is_empty() {
            true => String::new(),
            false => format!(" ({})", escape(&token.name)),
        };
        let key = format!("serve.tokens[{index}].allow{name}");
        let texts = token.allow.iter().map(ToString::to_string);
        texts.map(move |text| (key.clone(), text))
    })
}

pub(crate) fn hint(text: &str, tools: &[ToolName]) -> String {
    // In an allow list a bare name doesn't mean the tool that a server has under it.
    let of_server = tools.iter().filter(|tool| tool.name == text);
    let full = of_server.filter_map(|tool| Some(format!("{}/{text}", tool.server.as_ref()?)));
    if let Some(full) = full.min() {
        return format!("did you mean '{}'?", escape(&full));
    }
    let names = tools.iter().map(|tool| match &tool.server {
        Some(server) if text.contains('/') => format!("{server}/{}", tool.name),
        Some(server) if text.contains("__") => format!("{server}__{}", tool.name),
        _ => tool.name.clone(),
    });
    let names: Vec<String> = names.collect();
    did_you_mean(text, names.iter().map(String::as_str))
        .unwrap_or_else(|| "'toolgate list' shows all tools".to_owned())
}

fn matches_some(key: &str, text: &str, tools: &[ToolName]) -> bool {
    let pattern = ToolPattern::new(text);
    let withholds = WITHHOLDING.contains(&key);
    let is_match = |tool: &ToolName| match &tool.listed {
        Some(listed) if !withholds => {
            pattern.grants_name(tool.server.as_deref(), &tool.name, listed)
        }
        listed => {
            pattern.matches_name(tool.server.as_deref(), &tool.name)
                || matches!(listed, Some(listed) if pattern.matches_name(None, listed))
        }
    };
    text == "*" || tools.iter().any(is_match)
}

fn unknown_servers<'c>(config: &'c Config, servers: &[ServerStatus]) -> Vec<&'c ServerSettings> {
    let is_known = |name: &str| {
        let status = servers.iter().find(|status| status.name == name);
        status.is_some_and(|it| it.state == ServerState::Connected || it.remembered)
    };
    let all = config.servers.iter().map(|server| &server.settings);
    all.filter(|server| !is_known(&server.name)).collect()
}

fn names_one_of(text: &str, servers: &[&ServerSettings]) -> bool {
    let server = text.split_once('/').map(|(server, _)| server);
    let server = server.or_else(|| text.split_once("__").map(|(server, _)| server));
    server.is_some_and(|name| servers.iter().any(|server| server.name == name))
}

fn message(key: &str, text: &str, tools: &[ToolName], unknown: &[&ServerSettings]) -> String {
    let hint = hint(text, tools);
    let shown = escape(text);
    let absent = unknown.iter().filter(|server| !server.disabled);
    let absent: Vec<String> = absent
        .map(|server| format!("'{}'", escape(&server.name)))
        .collect();
    let caveat = match absent.as_slice() {
        [] => String::new(),
        names => format!(
            " (unless it belongs to {}, which can't be asked now)",
            names.join(", ")
        ),
    };
    format!("{key}: '{shown}' matches no tool{caveat}; {hint}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{ConfigReadOptions, SecretScope};
    use crate::wiring;

    fn messages_for(config: &serde_json::Value) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        std::fs::write(&path, config.to_string()).unwrap();
        let config = Config::read(
            &path,
            ConfigReadOptions::new(&|_| None, SecretScope::Everything),
        )
        .unwrap();
        let tools = wiring::build_tools(&config);
        let unmatched = unmatched(&config, &tools.manager.tools(), &[]);
        unmatched.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_misspelled_pattern_gets_a_suggestion() {
        let messages = messages_for(&json!({
            "policy": {
                "deny": ["volum"],
                "ask": ["ecko", "math_*"],
                "flow": { "untrusted": ["serch"], "private": ["documentz"], "outward": ["ech"] },
            },
            "limits": { "perTool": { "serch": { "timeout": "1s" } } },
            "serve": { "tokens": [
                { "token": "0123456789abcdef", "name": "kitchen", "allow": ["datetme", "echo"] },
            ] },
        }));
        assert_eq!(
            messages,
            [
                "policy.deny: 'volum' matches no tool; did you mean 'volume'?",
                "policy.ask: 'ecko' matches no tool; did you mean 'echo'?",
                "policy.flow.untrusted: 'serch' matches no tool; did you mean 'search'?",
                "policy.flow.private: 'documentz' matches no tool; 'toolgate list' shows all tools",
                "policy.flow.outward: 'ech' matches no tool; did you mean 'echo'?",
                "serve.tokens[0].allow (kitchen): 'datetme' matches no tool; did you mean 'datetime'?",
                "limits.perTool: 'serch' matches no tool; did you mean 'search'?",
            ]
        );
    }

    #[test]
    fn patterns_that_match_are_not_reported() {
        let config = json!({
            "policy": {
                "allow": ["*"],
                "deny": ["vol*"],
                "ask": ["echo"],
                "flow": { "untrusted": ["search"], "private": ["date*"], "outward": ["*"] },
            },
            "limits": { "perTool": { "search": { "timeout": "1s" } } },
        });
        assert_eq!(messages_for(&config), [""; 0]);
    }

    #[test]
    fn a_pattern_without_similar_names_points_to_the_list() {
        let messages = messages_for(&json!({ "policy": { "deny": ["frobnicate"] } }));
        assert_eq!(
            messages,
            ["policy.deny: 'frobnicate' matches no tool; 'toolgate list' shows all tools"]
        );
    }
}
