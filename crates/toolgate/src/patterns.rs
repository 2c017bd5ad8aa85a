//! Patterns of the configuration that match no tool. A misspelt one denies nothing and asks about nothing, so it is told.

use std::fmt;

use toolgate_core::{Pattern, Source, ToolDefinition, Tools, escape, nearest};
use toolgate_mcp::{Catalogue, ServerSettings, ServerState, ServerStatus};
use tracing::warn;

use crate::config::Config;
use crate::{servers, wiring};

/// Where a pattern means every tool of a name; elsewhere it means the one that has the name.
const WITHHOLDING: [&str; 5] = [
    "policy.deny",
    "policy.ask",
    "policy.flow.untrusted",
    "policy.flow.private",
    "policy.flow.outward",
];

/// A tool, by what patterns compare.
pub(crate) struct ToolName {
    /// `None` for a local one.
    server: Option<String>,
    name: String,
    /// What an allow list compares; `None` while nobody knows what the tool is listed as.
    listed: Option<String>,
}

impl ToolName {
    pub(crate) fn of(tool: &ToolDefinition) -> Self {
        let server = match tool.source() {
            Source::Mcp(server) => Some(server.clone()),
            _ => None,
        };
        Self {
            server,
            name: tool.original_name().to_owned(),
            listed: Some(tool.name().to_owned()),
        }
    }

    fn all_of(tools: &Tools) -> Vec<Self> {
        let definitions = tools.iter().map(|tool| tool.definition());
        definitions.map(Self::of).collect()
    }
}

/// A pattern that matches no tool, shown as a sentence that says what may have been meant.
pub(crate) struct UnmatchedPattern {
    pub(crate) place: String,
    pub(crate) pattern: String,
    message: String,
}

impl fmt::Display for UnmatchedPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Each pattern of the policy or of a token, and each name of `limits.perTool`, that matches no tool. A pattern for a server
/// whose tools aren't known yet is left out, and any other says which servers it may be about.
pub(crate) fn unmatched(
    config: &Config,
    tools: &Tools,
    servers: &[ServerStatus],
) -> Vec<UnmatchedPattern> {
    let names = ToolName::all_of(tools);
    let limits = config.limits.per_tool.keys();
    let limits = limits.filter(|name| tools.find(name).is_none());
    let limits = limits.map(|name| ("limits.perTool".to_owned(), name.clone()));
    let unknown = unknown_servers(config, servers);
    of_policy(config)
        .chain(of_tokens(config))
        .filter(|(place, text)| !matches_some(place, text, &names))
        .chain(limits)
        .filter(|(_, text)| !is_of_one(text, &unknown))
        .map(|(place, pattern)| UnmatchedPattern {
            message: told(&place, &pattern, &names, &unknown),
            place,
            pattern,
        })
        .collect()
}

/// For a command that makes one call: warns of patterns of the policy that mean no tool, local or remembered. No server is
/// started for that, and nothing is said while the tools of one aren't known.
pub(crate) fn warn_of_unmatched_policy(config: &Config, tools: &wiring::Tools) {
    let local = ToolName::all_of(&tools.manager.tools());
    for text in unmatched_policy(config, local, &servers::catalogue()) {
        warn!("{text}");
    }
}

fn unmatched_policy(
    config: &Config,
    mut names: Vec<ToolName>,
    catalogue: &Catalogue,
) -> Vec<String> {
    let idle = of_policy(config).filter(|(place, text)| !matches_some(place, text, &names));
    let mut idle: Vec<_> = idle.collect();
    if idle.is_empty() {
        // Most of the time, and no file is read for it.
        return Vec::new();
    }
    let servers = config.servers.iter().map(|server| &server.settings);
    let (disabled, mut enabled): (Vec<_>, Vec<_>) = servers.partition(|server| server.disabled);
    idle.retain(|(_, text)| !is_of_one(text, &disabled));
    // Servers that are named come first: if all patterns are theirs, the files of the others aren't read.
    let is_named =
        |server: &ServerSettings| idle.iter().any(|(_, text)| is_of_one(text, &[server]));
    enabled.sort_by_key(|server| !is_named(server));
    for server in enabled {
        if idle.is_empty() {
            break;
        }
        let Some(remembered) = catalogue.recall_names(server) else {
            return Vec::new();
        };
        names.extend(remembered.into_iter().map(|name| ToolName {
            server: Some(server.name.clone()),
            name,
            listed: None,
        }));
        idle.retain(|(place, text)| !matches_some(place, text, &names));
    }
    let idle = idle.into_iter();
    idle.map(|(place, text)| told(&place, &text, &names, &[]))
        .collect()
}

fn of_policy(config: &Config) -> impl Iterator<Item = (String, String)> {
    let policy = &config.policy;
    let places = [
        ("policy.allow", &policy.allow),
        ("policy.deny", &policy.deny),
        ("policy.ask", &policy.ask),
        ("policy.flow.untrusted", &policy.flow.untrusted),
        ("policy.flow.private", &policy.flow.private),
        ("policy.flow.outward", &policy.flow.outward),
    ];
    let places = places.into_iter();
    places.flat_map(|(place, patterns)| {
        let texts = patterns.iter().map(ToString::to_string);
        texts.map(move |text| (place.to_owned(), text))
    })
}

fn of_tokens(config: &Config) -> impl Iterator<Item = (String, String)> {
    let tokens = config.serve.tokens.iter().enumerate();
    tokens.flat_map(|(index, token)| {
        let name = match token.name.is_empty() {
            true => String::new(),
            false => format!(" ({})", escape(&token.name)),
        };
        let place = format!("serve.tokens[{index}].allow{name}");
        let texts = token.allow.iter().map(ToString::to_string);
        texts.map(move |text| (place.clone(), text))
    })
}

pub(crate) fn hint(text: &str, tools: &[ToolName]) -> String {
    // In an allow list a bare name isn't the tool that another server has under it.
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
    match nearest(text, names.iter().map(String::as_str), 1).pop() {
        Some(name) => format!("did you mean '{}'?", escape(&name)),
        None => "'toolgate list' shows which there are".to_owned(),
    }
}

/// True if a pattern at this place of the configuration means one of the tools.
fn matches_some(place: &str, text: &str, tools: &[ToolName]) -> bool {
    let pattern = Pattern::new(text);
    let withholds = WITHHOLDING.contains(&place);
    let is_meant = |tool: &ToolName| match &tool.listed {
        Some(listed) if !withholds => {
            pattern.grants_name(tool.server.as_deref(), &tool.name, listed)
        }
        listed => {
            pattern.matches_name(tool.server.as_deref(), &tool.name)
                || matches!(listed, Some(listed) if pattern.matches_name(None, listed))
        }
    };
    text == "*" || tools.iter().any(is_meant)
}

/// Configured servers whose tools nobody knows: they aren't connected and aren't remembered, or aren't trusted.
fn unknown_servers<'c>(config: &'c Config, servers: &[ServerStatus]) -> Vec<&'c ServerSettings> {
    let is_known = |name: &str| {
        let status = servers.iter().find(|status| status.name == name);
        status.is_some_and(|it| it.state == ServerState::Connected || it.remembered)
    };
    let all = config.servers.iter().map(|server| &server.settings);
    all.filter(|server| !is_known(&server.name)).collect()
}

fn is_of_one(text: &str, servers: &[&ServerSettings]) -> bool {
    let server = text.split_once('/').map(|(server, _)| server);
    let server = server.or_else(|| text.split_once("__").map(|(server, _)| server));
    server.is_some_and(|name| servers.iter().any(|server| server.name == name))
}

fn told(place: &str, text: &str, tools: &[ToolName], unknown: &[&ServerSettings]) -> String {
    let hint = hint(text, tools);
    let shown = escape(text);
    let absent = unknown.iter().filter(|server| !server.disabled);
    let absent: Vec<String> = absent
        .map(|server| format!("'{}'", escape(&server.name)))
        .collect();
    let caveat = match absent.as_slice() {
        [] => String::new(),
        names => format!(
            " (unless it is one of {}, which can't be asked now)",
            names.join(", ")
        ),
    };
    format!("{place}: '{shown}' matches no tool{caveat}; {hint}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{Reading, Uses};
    use crate::wiring;

    fn told_of(config: &serde_json::Value) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        std::fs::write(&path, config.to_string()).unwrap();
        let config = Config::read(&path, Reading::new(&|_| None, Uses::Everything)).unwrap();
        let tools = wiring::tools(&config);
        let unmatched = unmatched(&config, &tools.manager.tools(), &[]);
        unmatched.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_misspelt_pattern_is_told_with_the_nearest_name() {
        let told = told_of(&json!({
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
            told,
            [
                "policy.deny: 'volum' matches no tool; did you mean 'volume'?",
                "policy.ask: 'ecko' matches no tool; did you mean 'echo'?",
                "policy.flow.untrusted: 'serch' matches no tool; did you mean 'search'?",
                "policy.flow.private: 'documentz' matches no tool; 'toolgate list' shows which there are",
                "policy.flow.outward: 'ech' matches no tool; did you mean 'echo'?",
                "serve.tokens[0].allow (kitchen): 'datetme' matches no tool; did you mean 'datetime'?",
                "limits.perTool: 'serch' matches no tool; did you mean 'search'?",
            ]
        );
    }

    #[test]
    fn patterns_that_match_are_not_told() {
        let config = json!({
            "policy": {
                "allow": ["*"],
                "deny": ["vol*"],
                "ask": ["echo"],
                "flow": { "untrusted": ["search"], "private": ["date*"], "outward": ["*"] },
            },
            "limits": { "perTool": { "search": { "timeout": "1s" } } },
        });
        assert_eq!(told_of(&config), [""; 0]);
    }

    #[test]
    fn nothing_near_leads_to_the_list() {
        let told = told_of(&json!({ "policy": { "deny": ["frobnicate"] } }));
        assert_eq!(
            told,
            ["policy.deny: 'frobnicate' matches no tool; 'toolgate list' shows which there are"]
        );
    }
}
