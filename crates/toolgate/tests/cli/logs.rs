//! docs/logs.md against what the code logs: every field with its type, every event with its fields.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::gateway::RunningServe;
use crate::run::ProgramRun;

const BEGIN: &str = "<!-- events: TOOLGATE_WRITE_DOCS=1 cargo test -p toolgate --test cli logs:: rewrites them -->\n";
const END: &str = "<!-- end -->";

/// One call of a logging macro.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LogEvent {
    area: String,
    level: &'static str,
    message: String,
    fields: Vec<LogField>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LogField {
    name: String,
    /// The logged expression, as written in the code.
    value: String,
}

impl LogField {
    /// True if a sigil, or a value that is known to be a string, makes it text.
    fn is_text(&self) -> bool {
        let Self { name, value } = self;
        value.starts_with(['%', '?']) || STRINGS.contains(&format!("{name} = {value}").as_str())
    }
}

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Fields without a sigil whose value may be a string. All other fields without a sigil are
/// numbers or booleans; only the compiler could tell.
const STRINGS: &[&str] = &[
    "broker = broker.address()",
    "approval = approval",
    "caller = caller",
    "changes = changes",
    "content = content",
    "degraded = words",
    "details = details",
    "error = error",
    "function = function",
    "line = line",
    "panic = panic_text(&*panic)",
    "phase = name",
    "prefix = settings.house.prefix",
    "problem = problem",
    "run = id",
    "server = self.diagnostics.server()",
    "server = self.server",
    "server = server",
    "source = source",
    "stderr = stderr",
    "token = tokens.name(caller.number)",
    "tool = new.name()",
    "tool = tool",
    "tool = tool.definition().name()",
    "topic = topic",
    "why = why",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/logs.md")).unwrap()
}

/// The sources of a crate, without its tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// The text of a macro's arguments, and the part before its first comma outside
/// of brackets and quotes.
fn arguments(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted && depth == 0 => break,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(c);
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

fn event(area: &str, level: &'static str, arguments: &[String]) -> LogEvent {
    let message = arguments.iter().find(|part| part.starts_with('"'));
    let message = message.map_or("", |text| text.trim_matches('"'));
    let message = message.split("\\n").next().unwrap_or_default();
    let fields = arguments.iter().take_while(|part| !part.starts_with('"'));
    let fields = fields.filter(|part| !part.is_empty()).map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, part));
        LogField {
            name: name.trim().trim_start_matches(['%', '?']).to_owned(),
            value: value.trim().to_owned(),
        }
    });
    LogEvent {
        area: area.to_owned(),
        level,
        message: message.to_owned(),
        fields: fields.collect(),
    }
}

/// All events that are logged at these levels.
fn events(levels: &[&'static str]) -> BTreeSet<LogEvent> {
    let mut events = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let area = folder.file_name().unwrap().to_string_lossy().into_owned();
        if area.starts_with("fake") || area == "thirdparty" {
            continue;
        }
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            let text = std::fs::read_to_string(file).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for level in levels {
                for (at, name) in code.match_indices(&format!("{level}!(")) {
                    let before = code[..at].chars().next_back();
                    if !before.is_some_and(|c| c.is_alphanumeric() || "_\"`".contains(c)) {
                        let rest = &code[at + name.len()..];
                        events.insert(event(&area, level, &arguments(rest)));
                    }
                }
            }
        }
    }
    events
}

/// Name and type of every row of the table of fields.
fn documented(page: &str) -> BTreeMap<String, String> {
    let table = page.split("## Fields").nth(1).unwrap();
    let table = table.split("## Events").next().unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let name = cells.next().unwrap().trim_matches('`').to_owned();
        (name, cells.next().unwrap().to_owned())
    })
    .collect()
}

fn table(events: &BTreeSet<LogEvent>) -> String {
    let mut table = "| area | level | event | fields |\n|---|---|---|---|\n".to_owned();
    for event in events {
        // A message that is put together at run time differs each time.
        let fixed = event
            .message
            .split('{')
            .map(|part| part.split('}').next_back());
        let is_sentence = !fixed
            .flatten()
            .any(|part| part.contains(char::is_alphabetic));
        if is_sentence && event.fields.is_empty() {
            continue;
        }
        let message = event.message.replace('|', "\\|");
        let fields: Vec<String> = event
            .fields
            .iter()
            .map(|LogField { name, .. }| format!("`{name}`"))
            .collect();
        let (area, level, fields) = (&event.area, event.level.to_uppercase(), fields.join(", "));
        table.push_str(&format!("| {area} | {level} | {message} | {fields} |\n"));
    }
    table
}

#[test]
fn every_field_is_documented_and_has_one_type() {
    let documented = documented(&page());
    let mut used =
        BTreeSet::from(["timestamp", "level", "message", "span", "spans"].map(str::to_owned));
    for event in events(&LEVELS) {
        for field in &event.fields {
            let name = &field.name;
            let kind = documented.get(name);
            let kind =
                kind.unwrap_or_else(|| panic!("docs/logs.md has no field '{name}' of {event:?}"));
            // `tracing` has no objects; the formatter turns the text into one.
            let wants_text = kind == "text" || kind == "object";
            assert_eq!(
                field.is_text(),
                wants_text,
                "'{name}' is {kind} in docs/logs.md; in {event:?} it is text only with % or ?, or if STRINGS has it"
            );
            used.insert(name.clone());
        }
    }
    let idle: Vec<_> = documented
        .keys()
        .filter(|name| !used.contains(*name))
        .collect();
    assert!(idle.is_empty(), "nobody logs {idle:?}");
}

#[test]
fn every_event_is_documented_with_its_fields() {
    let (page, expected) = (page(), table(&events(&LEVELS[..3])));
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("TOOLGATE_WRITE_DOCS").is_some() {
        let page = format!("{before}{BEGIN}\n{expected}\n{END}{after}");
        std::fs::write(root().join("docs/logs.md"), page).unwrap();
        return;
    }
    let of = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (found, expected) = (of(found.trim()), of(expected.trim()));
    let missing: Vec<_> = expected.difference(&found).collect();
    let gone: Vec<_> = found.difference(&expected).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "docs/logs.md: missing {missing:#?}, gone {gone:#?}; {BEGIN}"
    );
}

/// The status of an answer to a request that names this host.
fn request_as(host: &str, address: &str) -> u16 {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /api/tools HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1);
    status.and_then(|status| status.parse().ok()).unwrap_or(0)
}

#[test]
fn records_in_json_have_the_documented_types() {
    let documented = documented(&page());
    let config = json!({
        "mcpServers": {
            "house": { "command": fakemcp::program() },
            "zwave": { "command": "no-such-program-of-toolgate" },
        },
        "limits": { "slowAfter": "1ms" },
        "retry": { "attempts": 1 },
    });
    let mut records = Vec::new();
    for (call, code) in [
        (&["call", "house__arguments", r#"{"a":1}"#][..], 0),
        (&["call", "math_eval", r#"{"expression":"1+"}"#], 1),
        (&["call", "nope"], 1),
    ] {
        let done = ProgramRun::new(["-vvv", "--log-format", "json", "--config", "t.json"])
            .args(call)
            .file("t.json", config.to_string())
            .done();
        assert_eq!(done.code, Some(code), "{done:?}");
        for line in done.stderr.lines() {
            let record: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            records.push(record);
        }
    }
    // Events that only a gateway logs, such as why it rejected a request.
    let mut gateway =
        RunningServe::start(ProgramRun::new(["-vv", "--log-format", "json", "serve"]));
    assert_eq!(gateway.get("/api/tools/nope/call").0, 405);
    assert_eq!(request_as("evil.example", &gateway.address), 403);
    assert_eq!(gateway.end("-TERM"), Some(0));
    let lines = gateway.log();
    records.extend(
        lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()),
    );
    for record in &records {
        for (name, value) in record.as_object().unwrap() {
            let kind = match value {
                Value::Number(_) => "number",
                Value::String(_) => "text",
                Value::Bool(_) => "true or false",
                Value::Object(_) => "object",
                _ => "list",
            };
            assert_eq!(
                documented.get(name).map(String::as_str),
                Some(kind),
                "{name} of {record}"
            );
        }
    }
    let has = |field: &str| records.iter().any(|record| record.get(field).is_some());
    assert!(
        has("elapsed_ms") && has("arguments") && has("server") && has("http_status"),
        "{records:#?}"
    );
    let blocks: Vec<_> = records
        .iter()
        .filter(|record| record["message"].as_str().unwrap().contains('❌'))
        .collect();
    assert!(!blocks.is_empty(), "{records:#?}");
    assert!(
        blocks.iter().all(|block| block["server"] == "zwave"),
        "{blocks:#?}"
    );
}
