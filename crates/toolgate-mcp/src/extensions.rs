//! Extensions of MCP (SEP-2133): which of them Toolgate itself takes part in, and what it passes on
//! of what others declare.

use serde_json::{Map, Value, json};
use toolgate_core::{is_named_by_extension, sanitize};

/// Pages that a host shows for a tool.
pub(crate) const APPS: &str = "io.modelcontextprotocol/ui";
pub(crate) const SKILLS: &str = "io.modelcontextprotocol/skills";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Extensions whose requests Toolgate answers itself, or that have none of their own. Requests of
/// any other extension go to the server that declares it.
const WITH_OWN_METHODS: [&str; 3] = [APPS, SKILLS, TASKS];
/// Extensions that Toolgate speaks for itself on each side, so that what one side declares says
/// nothing about the other.
const NOT_PASSED_ON: [&str; 1] = [TASKS];

/// The type of the pages that hosts of MCP Apps show.
const APP_TYPE: &str = "text/html;profile=mcp-app";

// Bounds of what one side declares.
const MAX_EXTENSIONS: usize = 32;
const MAX_ID: usize = 200;
const MAX_SETTINGS: u64 = 4 << 10;

/// What Toolgate declares to servers. An extension that it takes part in is one line here.
/// `relays` is true if clients may be behind the call: their hosts show pages.
pub(crate) fn declared_to_servers(relays: bool) -> Map<String, Value> {
    let mut declared = Map::new();
    declared.insert(SKILLS.to_owned(), json!({}));
    if relays {
        declared.insert(APPS.to_owned(), json!({ "mimeTypes": [APP_TYPE] }));
    }
    declared
}

/// What Toolgate declares to a server for a call of an MCP client: what that client declares, and
/// what Toolgate itself takes part in.
pub(crate) fn declared_for_client(client: &Map<String, Value>) -> Map<String, Value> {
    let mut declared = declared_to_servers(false);
    let passed_on = client
        .iter()
        .filter(|(id, _)| !NOT_PASSED_ON.contains(&id.as_str()));
    declared.extend(passed_on.map(|(id, settings)| (id.clone(), settings.clone())));
    declared
}

/// What clients may learn of the extensions that a server declares.
pub(crate) fn forwarded_extensions(capabilities: &Value) -> Map<String, Value> {
    let mut declared = declared_by(capabilities);
    declared.retain(|id, _| !NOT_PASSED_ON.contains(&id.as_str()));
    declared
}

/// The extensions in the capabilities of a client or a server. Entries that are too large, too many
/// or not of the form of the specification are left out.
pub(crate) fn declared_by(capabilities: &Value) -> Map<String, Value> {
    let declared = capabilities["extensions"].as_object().into_iter().flatten();
    let usable = declared.filter(|(id, settings)| {
        is_extension_id(id) && settings.is_object() && sanitize::length(settings) <= MAX_SETTINGS
    });
    let usable = usable.take(MAX_EXTENSIONS);
    usable
        .map(|(id, settings)| (id.clone(), settings.clone()))
        .collect()
}

/// True if requests that nobody here knows may belong to this extension.
pub(crate) fn may_have_requests(id: &str) -> bool {
    !WITH_OWN_METHODS.contains(&id)
}

/// True if these capabilities have an extension whose messages are passed on.
pub(crate) fn declares_messages(capabilities: &Value) -> bool {
    let declared = capabilities["extensions"].as_object();
    let mut ids = declared.into_iter().flat_map(Map::keys);
    ids.any(|id| may_have_requests(id) && is_extension_id(id))
}

/// True if a method that nobody here knows may belong to an extension.
pub(crate) fn may_be_extension_method(method: &str) -> bool {
    method.contains('/') && may_be_extension_name(method)
}

/// The name of a notification that may belong to an extension: its method, without what
/// most notifications begin with.
pub(crate) fn extension_notification(method: &str) -> Option<&str> {
    const MCP: [&str; 4] = ["cancelled", "initialized", "message", "progress"];
    match method.strip_prefix("notifications/") {
        Some(name) => (may_be_extension_name(name) && !MCP.contains(&name)).then_some(name),
        None => may_be_extension_method(method).then_some(method),
    }
}

/// True if this extension may define a notification of this name. `notifications/thing` may as well
/// be one of a later revision of MCP, so it has to bear the extension's name.
pub(crate) fn may_define_notification(id: &str, name: &str) -> bool {
    name.contains('/') || is_named_by_extension(id, name)
}

/// True if a method or a kind of result that nobody here knows may belong to an extension.
/// What begins like a method of MCP itself may be one of a later revision, which must not
/// be passed on unchecked.
pub(crate) fn may_be_extension_name(name: &str) -> bool {
    const MCP: [&str; 13] = [
        "completion",
        "elicitation",
        "initialize",
        "logging",
        "notifications",
        "ping",
        "prompts",
        "resources",
        "roots",
        "sampling",
        "server",
        "subscriptions",
        "tools",
    ];
    const OWN: [&str; 3] = ["skills", "tasks", "ui"];
    let (first, rest) = name.split_once('/').unwrap_or((name, name));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    name.len() <= MAX_ID
        && !first.is_empty()
        && !rest.is_empty()
        && name.chars().all(is_plain)
        && !MCP.contains(&first)
        && !OWN.contains(&first)
        && !name.starts_with("io.modelcontextprotocol/")
}

/// `{vendor-prefix}/{name}`, of labels with letters, digits and hyphens.
fn is_extension_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_part = |part: &str| !part.is_empty() && part.chars().all(is_plain);
    id.len() <= MAX_ID
        && id
            .split_once('/')
            .is_some_and(|(prefix, name)| is_part(prefix) && is_part(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_declarations_of_bounded_size_are_taken() {
        let mut extensions = json!({
            "com.example/thing": { "on": true },
            "io.modelcontextprotocol/tasks": {},
            "no-prefix": {},
            "a/b/c": {},
            "x/": {},
            "a b/c": {},
            "x/list": [],
            "x/large": { "text": "x".repeat(5000) },
        });
        extensions["x".repeat(MAX_ID) + "/y"] = json!({});
        let declared = declared_by(&json!({ "extensions": extensions }));
        let ids: Vec<&str> = declared.keys().map(String::as_str).collect();
        assert_eq!(ids, ["com.example/thing", "io.modelcontextprotocol/tasks"]);
        let passed = forwarded_extensions(&json!({ "extensions": extensions }));
        assert_eq!(
            Value::Object(passed),
            json!({ "com.example/thing": { "on": true } })
        );

        let many = (0..1000).map(|n| (format!("x/{n}"), json!({})));
        let many = json!({ "extensions": many.collect::<Map<_, _>>() });
        assert_eq!(declared_by(&many).len(), MAX_EXTENSIONS);
        for nothing in [
            json!(null),
            json!({}),
            json!({ "extensions": ["com.example/thing"] }),
        ] {
            assert!(declared_by(&nothing).is_empty());
        }
    }

    #[test]
    fn a_client_speaks_for_itself_but_not_for_us() {
        let client = json!({ "com.example/thing": { "on": true }, TASKS: { "theirs": 1 } });
        let declared = declared_for_client(client.as_object().unwrap());
        assert_eq!(declared["com.example/thing"], json!({ "on": true }));
        assert_ne!(declared.get(TASKS), Some(&json!({ "theirs": 1 })));
        assert!(declared.contains_key(SKILLS) && !declared.contains_key(APPS));
        assert!(declared_to_servers(true).contains_key(APPS));
    }

    #[test]
    fn methods_of_mcp_are_never_taken_for_those_of_an_extension() {
        for (method, expected) in [
            ("vendor/method", true),
            ("com.example/thing/do", true),
            ("tools/run", false),
            ("resources/directory/write", false),
            ("tasks/get", false),
            ("skills/add", false),
            ("notifications/x", false),
            ("io.modelcontextprotocol/x", false),
            ("ping", false),
            ("/x", false),
            ("x/", false),
            ("vendor/a b", false),
        ] {
            assert_eq!(may_be_extension_method(method), expected, "{method}");
        }
    }

    #[test]
    fn notifications_of_mcp_are_never_taken_for_those_of_an_extension() {
        for (method, expected) in [
            ("notifications/thing/changed", Some("thing/changed")),
            ("notifications/com.example/thing", Some("com.example/thing")),
            ("notifications/thing", Some("thing")),
            ("thing/changed", Some("thing/changed")),
            ("thing", None),
            ("notifications/progress", None),
            ("notifications/cancelled", None),
            ("notifications/tasks", None),
            ("notifications/tools/list_changed", None),
            ("notifications/roots/list_changed", None),
            ("notifications/notifications/thing/changed", None),
            ("notifications/io.modelcontextprotocol/x", None),
            ("notifications/", None),
            ("notifications/a b", None),
        ] {
            assert_eq!(extension_notification(method), expected, "{method}");
        }
        assert!(may_define_notification("com.example/thing", "thing"));
        assert!(!may_define_notification("com.example/thing", "later"));
        assert!(may_define_notification("com.example/thing", "vendor/x"));
    }
}
