//! [`ToolPattern`]: patterns that match tools in policies, tokens and filters.
//!
//! Several tools may have the same name: two servers may each have a `delete_all`, and a server is
//! free to choose its names. So a list that grants access reads a pattern narrowly, and a list that
//! denies access reads it widely. A mistake in either direction denies access.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer};

use crate::{ToolDefinition, ToolSource, tool_name};

/// Separates the server from its tool in the name that a tool is listed under.
const SEPARATOR: &str = "__";

/// Matches tools by `name`, by `server/name`, or by `server__name` as tools are listed; `*`
/// stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern {
    text: String,
    // Position of the first `/`, where the server's name ends.
    slash: Option<usize>,
    is_listed: bool,
}

impl ToolPattern {
    /// Parses a pattern. The part before the first `/` is a server.
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            slash: text.find('/'),
            is_listed: text.contains(SEPARATOR),
        }
    }

    /// True if the pattern covers this tool in a list that denies access, such as `deny`:
    /// by its name on its server, even if other tools have that name too, or by the name
    /// it is listed under.
    pub fn matches(&self, tool: &ToolDefinition) -> bool {
        self.matches_name(server_of(tool), tool.original_name())
            || glob_matches(&self.text, tool.name())
    }

    /// Like [`matches`](Self::matches), for a tool with this original name. `server` is
    /// `None` for local tools.
    pub fn matches_name(&self, server: Option<&str>, name: &str) -> bool {
        // The tool's own name may contain a slash, so the whole pattern is tried first.
        self.text == "*"
            || matches_display_name(&self.text, name)
            || server.is_some_and(|server| self.matches_on_server(server, name))
    }

    /// True if the pattern covers this tool in a list that grants access, such as `allow`: by
    /// `server/name`, or by the name it is listed under. A bare name covers only the tool listed
    /// under it, and not another server's tool of the same name.
    pub fn grants(&self, tool: &ToolDefinition) -> bool {
        self.grants_name(server_of(tool), tool.original_name(), tool.name())
    }

    /// Like [`grants`](Self::grants), for a tool with these two names. `server` is
    /// `None` for local tools.
    pub fn grants_name(&self, server: Option<&str>, original: &str, listed: &str) -> bool {
        if self.text == "*" {
            return true;
        }
        let is_bare = self.slash.is_none() && !self.is_listed;
        match server {
            // Never by the original name alone: a server may call its tool `b__x` or `b/x` to be
            // taken for the server `b`.
            Some(server) if !is_bare => self.matches_on_server(server, original),
            _ => {
                let has_its_name = || listed == tool_name::display_name(original);
                glob_matches(&self.text, listed)
                    || (has_its_name() && glob_matches(&self.text, original))
            }
        }
    }

    fn matches_on_server(&self, server: &str, name: &str) -> bool {
        let is_named = |slash: usize| {
            glob_matches(&self.text[..slash], server)
                && matches_display_name(&self.text[slash + 1..], name)
        };
        let is_listed = || {
            let server = tool_name::display_name(server);
            matches_display_name(&self.text, &format!("{server}{SEPARATOR}{name}"))
        };
        self.slash.is_some_and(is_named) || (self.is_listed && is_listed())
    }
}

fn server_of(tool: &ToolDefinition) -> Option<&str> {
    match tool.source() {
        ToolSource::Mcp(server) => Some(server),
        _ => None,
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for ToolPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::new(&text))
    }
}

// Patterns are written by people, who see the escaped name, so both forms match.
fn matches_display_name(pattern: &str, name: &str) -> bool {
    glob_matches(pattern, name)
        || matches!(tool_name::display_name(name), Cow::Owned(shown) if glob_matches(pattern, &shown))
}

// Linear in practice, and never worse than the product of both lengths, because only the last `*`
// is retried.
fn glob_matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            p = at + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(source: ToolSource, name: &str, original: &str) -> ToolDefinition {
        ToolDefinition::builder(name, "…", json!({ "type": "object" }))
            .source(source)
            .original_name(original)
            .build()
            .unwrap()
    }

    fn server_tool(server: &str, name: &str, original: &str) -> ToolDefinition {
        tool(ToolSource::Mcp(server.to_owned()), name, original)
    }

    /// Checks for each pattern whether it denies and whether it grants the tool.
    fn check(tool: &ToolDefinition, expected: &[(&str, bool, bool)]) {
        for (text, matches, grants) in expected {
            let pattern = ToolPattern::new(text);
            let found = (pattern.matches(tool), pattern.grants(tool));
            assert_eq!(found, (*matches, *grants), "{text} {}", tool.name());
        }
    }

    #[test]
    fn patterns_match_a_tool_by_name_or_by_server_and_name() {
        check(
            &server_tool("house", "unlock", "unlock"),
            &[
                ("*", true, true),
                ("unlock", true, true),
                ("un*k*", true, true),
                ("house/unlock", true, true),
                ("house/*", true, true),
                ("*/unlock", true, true),
                ("house__unlock", true, true),
                ("house__*", true, true),
                ("other/*", false, false),
                ("other__*", false, false),
                ("", false, false),
            ],
        );
        check(
            &tool(ToolSource::Builtin, "echo", "echo"),
            &[
                ("*", true, true),
                ("e*o", true, true),
                ("house/echo", false, false),
                ("*/echo", false, false),
                ("house__echo", false, false),
            ],
        );
    }

    #[test]
    fn a_bare_name_does_not_grant_another_servers_tool() {
        check(
            &server_tool("notes", "notes__datetime", "datetime"),
            &[
                ("datetime", true, false),
                ("date*", true, false),
                ("notes__datetime", true, true),
                ("notes__*", true, true),
                ("notes/datetime", true, true),
                ("notes*", true, true),
                ("*", true, true),
            ],
        );
        // Not even the third tool of the same name.
        check(
            &server_tool("notes", "notes__datetime_2", "datetime"),
            &[("datetime", true, false), ("notes/datetime", true, true)],
        );
    }

    #[test]
    fn a_tools_name_never_makes_it_another_servers() {
        for name in ["house/lamp2", "house__lamp2"] {
            check(
                &server_tool("evil", name, name),
                &[
                    (name, true, false),
                    ("house/*", name.contains('/'), false),
                    ("house__*", name.contains("__"), false),
                    ("house/lamp2", name.contains('/'), false),
                    (&format!("evil/{name}"), true, true),
                    (&format!("evil__{name}"), true, true),
                    ("evil/*", true, true),
                    ("*", true, true),
                ],
            );
        }
        // A local tool is the user's own, so its name can be trusted.
        check(
            &tool(ToolSource::Builtin, "notes/read", "notes/read"),
            &[("notes/read", true, true), ("notes/*", true, true)],
        );
    }

    #[test]
    fn a_name_with_invisible_characters_is_matched_as_displayed() {
        check(
            &server_tool("house", "un\u{200b}lock", "un\u{200b}lock"),
            &[
                (r"un\u{200b}lock", true, true),
                (r"house/un\u{200b}lock", true, true),
                (r"house__un\u{200b}lock", true, true),
                ("un\u{200b}lock", true, true),
                ("house/un\u{200b}lock", true, true),
                ("unlock", false, false),
            ],
        );
    }

    #[test]
    fn hostile_patterns_are_matched_in_bounded_time() {
        assert!(!glob_matches(&"*a".repeat(1000), &"a".repeat(900)));
    }
}
