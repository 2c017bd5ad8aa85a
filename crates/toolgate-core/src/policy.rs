//! Who may use what.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::{Source, ToolDefinition};

/// Which tools may be called, and which only with a person's approval. It is enforced when a call is executed, whatever a
/// listing showed. Patterns match a tool's original name and server, never the name it happens to be listed under.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Decision, Policy, ToolDefinition};
///
/// let policy: Policy = serde_json::from_value(json!({ "ask": ["*_lock"], "deny": ["reset"] })).unwrap();
/// let unlock = ToolDefinition::builder("control_lock", "Locks", json!({ "type": "object" })).build()?;
/// assert_eq!(policy.decide(&unlock), Decision::Ask);
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(
    description = "Which tools exist, and which wait for your approval; a pattern is a name or server/name, * stands for anything"
)]
#[non_exhaustive]
pub struct Policy {
    /// Only these exist.
    #[schemars(with = "Vec<String>")]
    pub allow: Vec<Pattern>,
    /// These do not, though allowed.
    #[schemars(with = "Vec<String>")]
    pub deny: Vec<Pattern>,
    /// These wait for a person's approval.
    #[schemars(with = "Vec<String>")]
    pub ask: Vec<Pattern>,
}

/// What a policy says of a tool.
///
/// ```
/// use toolgate_core::Decision;
///
/// fn mark(decision: Decision) -> &'static str {
///     match decision {
///         Decision::Allow => "",
///         Decision::Ask => "asks first",
///         Decision::Hide => "hidden",
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Go ahead.
    Allow,
    /// Ask a person first.
    Ask,
    /// There is no such tool for this caller.
    Hide,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            allow: vec![Pattern::new("*")],
            deny: Vec::new(),
            ask: Vec::new(),
        }
    }
}

impl Policy {
    /// Decides for one tool.
    pub fn decide(&self, tool: &ToolDefinition) -> Decision {
        let matches = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(tool));
        match () {
            () if !matches(&self.allow) || matches(&self.deny) => Decision::Hide,
            () if matches(&self.ask) => Decision::Ask,
            () => Decision::Allow,
        }
    }
}

/// `name` or `server/name`; `*` stands for any characters.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{Pattern, Source, ToolDefinition};
///
/// let tool = ToolDefinition::builder("unlock", "Unlocks", json!({})).source(Source::Mcp("house".to_owned())).build()?;
/// assert!(Pattern::new("house/*").matches(&tool));
/// # Ok::<_, toolgate_core::DefinitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    server: Option<String>,
    name: String,
}

impl Pattern {
    /// Reads a pattern. Only a part before the first `/` that could be a server is one.
    pub fn new(text: &str) -> Self {
        match text.split_once('/') {
            Some((server, name)) => Self {
                server: Some(server.to_owned()),
                name: name.to_owned(),
            },
            None => Self {
                server: None,
                name: text.to_owned(),
            },
        }
    }

    /// True if the pattern means this tool.
    pub fn matches(&self, tool: &ToolDefinition) -> bool {
        let Some(server) = &self.server else {
            return self.name == "*" || glob(&self.name, tool.original_name());
        };
        let on_server = matches!(tool.source(), Source::Mcp(name) if glob(server, name))
            && glob(&self.name, tool.original_name());
        // A tool's own name may hold a slash.
        on_server || glob(&format!("{server}/{}", self.name), tool.original_name())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => write!(f, "{server}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::new(&text))
    }
}

/// Linear in practice and never worse than the product of both lengths: the last `*` is the only place to go back to.
fn glob(pattern: &str, text: &str) -> bool {
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

    fn tool(source: Source, name: &str, original: &str) -> ToolDefinition {
        ToolDefinition::builder(name, "…", json!({ "type": "object" }))
            .source(source)
            .original_name(original)
            .build()
            .unwrap()
    }

    #[test]
    fn patterns_match_the_original_name_and_the_server() {
        let unlock = tool(Source::Mcp("house".to_owned()), "house__unlock", "unlock");
        let echo = tool(Source::Builtin, "echo", "echo");
        for (pattern, of_unlock, of_echo) in [
            ("*", true, true),
            ("unlock", true, false),
            ("house__unlock", false, false),
            ("house/unlock", true, false),
            ("house/*", true, false),
            ("other/*", false, false),
            ("*/unlock", true, false),
            ("e*o", false, true),
            ("un*k*", true, false),
            ("", false, false),
        ] {
            let pattern = Pattern::new(pattern);
            assert_eq!(
                (pattern.matches(&unlock), pattern.matches(&echo)),
                (of_unlock, of_echo),
                "{pattern:?}"
            );
        }
        assert!(Pattern::new("notes/read").matches(&tool(
            Source::Builtin,
            "notes/read",
            "notes/read"
        )));
    }

    #[test]
    fn deny_beats_allow_and_ask_comes_last() {
        let list = |names: &[&str]| {
            names
                .iter()
                .map(|name| Pattern::new(name))
                .collect::<Vec<_>>()
        };
        let echo = tool(Source::Builtin, "echo", "echo");
        for (allow, deny, ask, expected) in [
            (&["*"][..], &[][..], &[][..], Decision::Allow),
            (&["*"], &["echo"], &["echo"], Decision::Hide),
            (&["*"], &[], &["e*"], Decision::Ask),
            (&["search"], &[], &[], Decision::Hide),
            (&[], &[], &[], Decision::Hide),
        ] {
            let policy = Policy {
                allow: list(allow),
                deny: list(deny),
                ask: list(ask),
            };
            assert_eq!(policy.decide(&echo), expected);
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        assert!(!glob(&"*a".repeat(1000), &"a".repeat(900)));
    }
}
