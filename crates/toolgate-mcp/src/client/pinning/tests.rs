use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::client::content::ListedContent;
use crate::{ServerConnection, ServerProgram};

fn house() -> ServerSettings {
    let settings = ServerSettings::new("house", ServerConnection::Stdio(ServerProgram::default()));
    settings.with_identity(&json!({ "command": "house-mcp" }), Path::new("/house"))
}

fn with_pin(pin: PinPolicy) -> ServerSettings {
    ServerSettings { pin, ..house() }
}

fn memory() -> (ToolCatalog, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (ToolCatalog::new(folder.path()), folder)
}

/// One Toolgate process that runs the server.
struct GatewayRun {
    catalog: ToolCatalog,
    settings: ServerSettings,
    pins: ToolPins,
}

impl GatewayRun {
    fn start(catalog: &ToolCatalog, settings: ServerSettings) -> Self {
        let pins = catalog.pins(&settings, &Redactor::default());
        Self {
            catalog: catalog.clone(),
            settings,
            pins,
        }
    }

    /// Compares a list, and returns the names of withheld tools.
    fn lists(&self, tools: &[Value]) -> Vec<String> {
        let verdict = self.pins.compare(tools);
        self.catalog
            .remember(&self.settings, tools, &ListedContent::default());
        names(&verdict)
    }

    /// The differences from the agreement: name, kind, and whether it is withheld.
    fn changes(&self) -> Vec<(String, ToolChangeKind, bool)> {
        let changes = self.pins.changes();
        let tools = changes.into_iter().flat_map(|changes| changes.tools);
        tools
            .map(|tool| (tool.tool, tool.kind, tool.withheld))
            .collect()
    }

    fn agree(&self) -> Vec<String> {
        let hash = self.pins.changes().unwrap().hash;
        names(&self.pins.agree(&hash).unwrap())
    }
}

fn names(verdict: &PinVerdict) -> Vec<String> {
    let mut names: Vec<String> = verdict.withheld.keys().cloned().collect();
    names.sort();
    names
}

fn tool(name: &str, description: &str, annotations: &Value) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" }, "annotations": annotations })
}

fn reads(name: &str) -> Value {
    tool(name, "Reads", &json!({ "readOnlyHint": true }))
}

fn destroys(name: &str) -> Value {
    tool(name, "Wipes", &json!({ "destructiveHint": true }))
}

use ToolChangeKind::{Changed, Gone, New};

#[test]
fn the_first_list_is_agreed_to_and_survives_a_restart() {
    let (catalog, _folder) = memory();
    let first = GatewayRun::start(&catalog, house());
    assert!(
        first.lists(&[]).is_empty(),
        "an empty list does not count as the first"
    );
    assert!(first.lists(&[destroys("wipe"), reads("look")]).is_empty());
    let next = GatewayRun::start(&catalog, house());
    assert!(next.lists(&[reads("look"), destroys("wipe")]).is_empty());
    assert_eq!(next.changes(), []);
}

#[test]
fn only_destructive_changes_are_withheld() {
    let (read_only, nothing) = (json!({ "readOnlyHint": true }), json!({}));
    let destructive = json!({ "destructiveHint": true });
    for (old, new, withheld) in [
        (&read_only, &nothing, true),
        (&read_only, &json!({ "readOnlyHint": false }), true),
        (&nothing, &destructive, true),
        // A server could avoid the question by removing the mark.
        (&destructive, &read_only, true),
        (&nothing, &read_only, false),
        (&nothing, &json!({ "openWorldHint": true }), false),
        (&read_only, &read_only, false),
        (&destructive, &destructive, true),
    ] {
        let (catalog, _folder) = memory();
        let process = GatewayRun::start(&catalog, house());
        process.lists(&[tool("t", "Does it", old)]);
        process.lists(&[tool("t", "Does it, and more", new)]);
        let expected = [("t".to_owned(), Changed, withheld)];
        assert_eq!(process.changes(), expected, "{old} {new}");
    }
}

#[test]
fn every_pinned_part_counts_and_nothing_else_does() {
    let base = json!({ "name": "t", "description": "Does it", "inputSchema": { "type": "object", "properties": { "a": { "enum": ["x", "y"] } }, "required": ["a", "b"] } });
    for (pointer, value, counts) in [
        ("description", json!("Does more"), true),
        ("title", json!("A title"), true),
        ("outputSchema", json!({ "type": "object" }), true),
        ("annotations", json!({ "idempotentHint": true }), true),
        ("inputSchema", json!({ "type": "object" }), true),
        ("_meta", json!({ "build": 7 }), false),
        ("icons", json!([]), false),
        ("title", Value::Null, false),
        (
            "inputSchema",
            json!({ "required": ["b", "a"], "properties": { "a": { "enum": ["y", "x"] } }, "type": "object" }),
            false,
        ),
    ] {
        let (catalog, _folder) = memory();
        let process = GatewayRun::start(&catalog, house());
        process.lists(std::slice::from_ref(&base));
        let mut other = base.clone();
        other[pointer] = value;
        process.lists(std::slice::from_ref(&other));
        assert_eq!(!process.changes().is_empty(), counts, "{other}");
    }
}

#[test]
fn a_list_never_changes_the_agreement() {
    let (catalog, _folder) = memory();
    let process = GatewayRun::start(&catalog, house());
    process.lists(&[reads("look")]);
    for _ in 0..3 {
        assert_eq!(process.lists(&[destroys("look")]), ["look"]);
        let next = GatewayRun::start(&catalog, house());
        assert_eq!(next.lists(&[destroys("look")]), ["look"]);
    }
    assert!(process.lists(&[reads("look")]).is_empty());
}

#[test]
fn a_rename_is_a_removal_and_an_addition() {
    let (catalog, _folder) = memory();
    let process = GatewayRun::start(&catalog, house());
    process.lists(&[destroys("wipe"), reads("look")]);
    assert_eq!(
        process.lists(&[destroys("clean"), reads("look")]),
        ["clean"]
    );
    let expected = [
        ("clean".to_owned(), New, true),
        ("wipe".to_owned(), Gone, false),
    ];
    assert_eq!(process.changes(), expected);
    assert!(process.agree().is_empty());
    // The agreement no longer contains the old name.
    assert_eq!(process.lists(&[destroys("wipe"), reads("look")]), ["wipe"]);
}

#[test]
fn a_tool_that_returns_is_still_agreed_to() {
    let (catalog, _folder) = memory();
    let process = GatewayRun::start(&catalog, house());
    process.lists(&[destroys("wipe"), reads("look")]);
    process.lists(&[reads("look")]);
    assert_eq!(process.changes(), []);
    assert!(process.lists(&[destroys("wipe"), reads("look")]).is_empty());
}

#[test]
fn the_pin_policy_decides_what_is_withheld() {
    for (pin, harmless, dangerous) in [
        (PinPolicy::AskIfDestructive, Some(false), Some(true)),
        (PinPolicy::Ask, Some(true), Some(true)),
        (PinPolicy::Warn, Some(false), Some(false)),
        (PinPolicy::Off, None, None),
    ] {
        let (catalog, _folder) = memory();
        let process = GatewayRun::start(&catalog, with_pin(pin));
        process.lists(&[reads("look")]);
        let withheld = |process: &GatewayRun| process.changes().first().map(|change| change.2);
        process.lists(&[tool("look", "Reads more", &json!({ "readOnlyHint": true }))]);
        assert_eq!(withheld(&process), harmless, "{pin:?}");
        process.lists(&[reads("look"), destroys("wipe")]);
        assert_eq!(withheld(&process), dangerous, "{pin:?}");
    }
}

#[test]
fn excluded_tools_are_neither_shown_nor_agreed_to() {
    let (catalog, _folder) = memory();
    let few = ServerSettings {
        excluded_tools: vec![toolgate_core::ToolPattern::new("wipe")],
        ..house()
    };
    let process = GatewayRun::start(&catalog, few);
    process.lists(&[reads("look"), reads("wipe")]);
    process.lists(&[destroys("look"), destroys("wipe")]);
    assert_eq!(process.changes(), [("look".to_owned(), Changed, true)]);
    process.agree();
    let all = GatewayRun::start(&catalog, house());
    assert_eq!(all.changes(), [("wipe".to_owned(), Changed, true)]);
}

#[test]
fn agreeing_requires_the_current_hash() {
    let (catalog, _folder) = memory();
    let process = GatewayRun::start(&catalog, house());
    process.lists(&[reads("look")]);
    process.lists(&[destroys("look")]);
    let shown = process.pins.changes().unwrap().hash;
    process.lists(&[tool("look", "Sends your keys", &json!({}))]);
    let refused = process.pins.agree(&shown);
    assert!(matches!(refused, Err(AgreementError::OtherChanges(_))));
    assert_eq!(process.changes().len(), 1);
}

#[test]
fn an_agreement_in_one_process_is_noticed_in_the_other() {
    let (catalog, _folder) = memory();
    let [gateway, command] = [(); 2].map(|()| GatewayRun::start(&catalog, house()));
    gateway.lists(&[reads("look")]);
    assert_eq!(gateway.lists(&[destroys("look")]), ["look"]);
    assert!(gateway.pins.refresh().is_none());
    // The command reads the remembered list and starts no server.
    let changes = catalog.changes(&house(), &Redactor::default()).unwrap();
    assert_eq!(changes.withheld(), 1);
    catalog.agree_to_changes(&house(), &changes.hash).unwrap();
    let verdict = gateway.pins.refresh().unwrap();
    assert!(verdict.withheld.is_empty() && verdict.changes.is_none());
    assert!(command.lists(&[destroys("look")]).is_empty());
    assert_eq!(command.lists(&[destroys("other")]), ["other"]);
}

#[test]
fn the_first_written_list_is_agreed_to() {
    let (catalog, _folder) = memory();
    let [one, two] = [(); 2].map(|()| GatewayRun::start(&catalog, house()));
    assert!(one.lists(&[reads("look")]).is_empty());
    assert_eq!(two.lists(&[destroys("look")]), ["look"]);
    assert_eq!(GatewayRun::start(&catalog, house()).changes().len(), 1);
}

#[test]
fn a_changed_entry_is_a_new_server() {
    let (catalog, _folder) = memory();
    GatewayRun::start(&catalog, house()).lists(&[reads("look")]);
    let other = ServerSettings::new("house", ServerConnection::Stdio(ServerProgram::default()))
        .with_identity(&json!({ "command": "other" }), Path::new("/house"));
    let other = GatewayRun::start(&catalog, other);
    assert!(other.lists(&[destroys("look")]).is_empty());
}

#[test]
fn without_a_catalog_the_first_list_of_the_run_is_agreed_to() {
    let nameless = ServerSettings::new("house", ServerConnection::Stdio(ServerProgram::default()));
    let process = GatewayRun::start(&ToolCatalog::default(), nameless.clone());
    process.lists(&[reads("look")]);
    assert_eq!(process.lists(&[destroys("look")]), ["look"]);
    let slower = ServerSettings {
        timeout: Some(std::time::Duration::from_secs(9)),
        ..nameless
    };
    let redactor = Redactor::default();
    let after = ToolPins::new(
        &slower,
        &ToolCatalog::default(),
        &redactor,
        Some(&process.pins),
    );
    assert_eq!(names(&after.compare(&[destroys("look")])), ["look"]);
}

#[test]
fn differences_are_paths_with_both_sides_redacted_escaped_and_bounded() {
    let old = json!({ "name": "t", "description": "Reads", "annotations": { "readOnlyHint": true },
        "inputSchema": { "properties": { "file": { "type": "string" }, "gone": {} } } });
    let new = json!({ "name": "t", "description": "Reads\nhunter2 \u{200b}", "annotations": {},
        "inputSchema": { "properties": { "file": { "type": "number" } } } });
    let redactor = Redactor::new(["hunter2".to_owned()]);
    let shown = |old: &Value, new: &Value, room: usize| {
        let (shown, more) = find_differences(old, new, &redactor, &mut { room });
        let lines: Vec<String> = shown.iter().map(ToString::to_string).collect();
        (lines, more)
    };
    let (lines, more) = shown(&old, &new, MAX_DIFFERENCE_BYTES);
    let expected = [
        "annotations.readOnlyHint: true → (none)",
        "description: Reads → Reads\\n[REDACTED] \\u{200b}",
        "inputSchema.properties.file.type: string → number",
        "inputSchema.properties.gone: {} → (none)",
    ];
    assert_eq!((lines, more), (expected.map(str::to_owned).to_vec(), 0));
    assert_eq!(shown(&old, &new, 10), (Vec::new(), 4));
    // A change at the end of a long text is shown too.
    let long = |end: &str| json!({ "description": format!("{}{end}", "x".repeat(5000)) });
    let (lines, _) = shown(&long("é1"), &long("ê2"), MAX_DIFFERENCE_BYTES);
    let same = "x".repeat(39);
    assert_eq!(lines, [format!("description: …{same}é1 → …{same}ê2")]);
    let many: Value = (0..100).map(|n| (format!("k{n}"), json!(n))).collect();
    let (lines, more) = shown(
        &json!({ "annotations": {} }),
        &json!({ "annotations": many }),
        MAX_DIFFERENCE_BYTES,
    );
    assert_eq!((lines.len(), more), (20, 80));
}

#[test]
fn memory_for_a_hostile_list_is_bounded() {
    let (catalog, _folder) = memory();
    let process = GatewayRun::start(&catalog, house());
    process.lists(&[reads("first")]);
    let huge: Vec<Value> = (0..1000)
        .map(|n| {
            tool(
                &format!("t{n}"),
                &"\u{1b}".repeat(8000),
                &json!({ "destructiveHint": true }),
            )
        })
        .collect();
    assert_eq!(process.lists(&huge).len(), 1000);
    let changes = process.pins.changes().unwrap();
    let kept = serde_json::to_string(&changes).unwrap().len();
    assert!(kept < 2 * MAX_DIFFERENCE_BYTES, "{kept}");
}

proptest::proptest! {
    /// Shuffled tools and schema keys are the same tools.
    #[test]
    fn order_does_not_matter(order in proptest::collection::vec(0_usize..1000, 12)) {
        let keys = ["alpha", "beta", "gamma", "delta"];
        let definition = |n: usize, order: &[usize]| {
            let mut keys: Vec<(usize, &str)> = order.iter().copied().zip(keys).collect();
            keys.sort_unstable();
            let properties: serde_json::Map<String, Value> = keys.iter()
                .map(|(_, key)| ((*key).to_owned(), json!({ "type": "string", "title": key })))
                .collect();
            json!({ "name": format!("t{n}"), "description": "Does it", "inputSchema": { "type": "object", "properties": properties } })
        };
        let pins = ToolPins::new(&with_pin(PinPolicy::Ask), &ToolCatalog::default(), &Redactor::default(), None);
        let first: Vec<Value> = (0..4).map(|n| definition(n, &[0, 1, 2, 3])).collect();
        pins.compare(&first);
        let mut tools: Vec<(usize, usize)> = order[8..].iter().copied().zip(0..4).collect();
        tools.sort_unstable();
        let shuffled: Vec<Value> = tools.iter().map(|(_, n)| definition(*n, &order[*n..*n + 4])).collect();
        pins.compare(&shuffled);
        proptest::prop_assert!(pins.changes().is_none());
    }
}
