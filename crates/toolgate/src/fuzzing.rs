//! Properties of every configuration, even a hostile one. `fuzz/` checks them with libFuzzer, the
//! tests here with random text.

use std::path::Path;

use serde_json::Value;
use toolgate_core::text::escape;
use toolgate_mcp::ServerConnection;

use crate::config::{
    self as configuration, Config, ConfigDocument, ConfigError, ReferenceSet, SecretScope, servers,
};
use crate::effects::{self, ConfigEffect};

const FILE: &str = "/etc/toolgate.json";
// The value of a variable, which may be a secret no matter where the file uses it.
const SECRET: &str = "s3cret-0f-the-environment";

fn environment(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/ada".to_owned()),
        "KEY" => Some(SECRET.to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

/// Checks one file, or two with a NUL between them: one that was agreed to, and its next version.
pub fn config(bytes: &[u8]) {
    let mut files = bytes.splitn(2, |byte| *byte == 0);
    let before = files.next().and_then(ConfigSummary::new);
    let after = files.next().and_then(ConfigSummary::new);
    let (Some(before), Some(after)) = (before, after) else {
        return;
    };
    let difference = effects::difference(&before.effects, &after.effects);
    difference
        .iter()
        .for_each(|line| expect_one_safe_line(line));
    if let (Some(one), Some(other), true) =
        (&before.settings, &after.settings, difference.is_empty())
    {
        assert_eq!(one, other, "a change that nobody is shown");
    }
}

/// What a file without syntax errors means.
#[derive(Debug, PartialEq)]
struct ConfigSummary {
    effects: Vec<ConfigEffect>,
    /// `None` if something in the file is wrong.
    settings: Option<String>,
}

impl ConfigSummary {
    fn new(bytes: &[u8]) -> Option<Self> {
        let reading = Self::read(bytes);
        assert_eq!(reading, Self::read(bytes), "the same file twice");
        reading
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let text = String::from_utf8_lossy(bytes);
        if text.contains(SECRET) {
            return None; // The fuzzer has guessed it.
        }
        let document = match ConfigDocument::parse(Path::new(FILE), bytes) {
            Ok(document) => document,
            Err(errors) => {
                errors.iter().for_each(|error| expect_usable(error, &text));
                return None;
            }
        };
        if document.value().to_string().contains(SECRET) {
            return None; // The same, with escapes.
        }
        let effects = effects::list_effects(&document, &environment);
        effects
            .iter()
            .for_each(|effect| expect_one_safe_line(&effect.text));
        expect_all_shown(document.value(), &effects);
        let mut found = ReferenceSet::default();
        found.collect(document.value());
        if !found.secrets.is_empty() {
            // Resolving would read files and run commands.
            return Some(Self {
                effects,
                settings: None,
            });
        }
        let reading = configuration::ConfigReadOptions::new(&environment, SecretScope::Everything);
        let settings = match Config::resolve(document, reading) {
            Ok(config) => Some(config),
            Err(errors) => {
                errors.iter().for_each(|error| expect_usable(error, &text));
                None
            }
        };
        if let Some(config) = &settings {
            let problems = config.server_problems.iter().map(|problem| &problem.error);
            let told = config.warnings.iter().chain(problems).chain(config.unset());
            told.for_each(|error| expect_usable(error, &text));
            expect_right_verbs(config, &effects);
        }
        Some(Self {
            effects,
            settings: settings.as_ref().map(settings_text),
        })
    }
}

fn expect_usable(error: &ConfigError, text: &str) {
    assert!(error.is_within(text), "{error}");
    expect_one_safe_line(&error.to_string());
}

/// Fails if the text could forge a line or drive a terminal, or contains the value of a variable.
fn expect_one_safe_line(text: &str) {
    assert_eq!(text, escape(text));
    assert!(!text.contains(SECRET), "{text}");
}

/// Fails unless everything that would run or be contacted is in the lines that a person agrees to.
fn expect_all_shown(root: &Value, effects: &[ConfigEffect]) {
    let is_shown = |text: &str, start: &str| {
        let forms = [escape(text), escape(&text.replace('\'', r"'\''"))];
        let mut lines = effects.iter().map(|effect| &effect.text);
        lines.any(|line| line.starts_with(start) && forms.iter().any(|form| line.contains(form)))
    };
    let entries = servers::KEYS.map(|key| root[key].as_object());
    for (name, entry) in entries.into_iter().flatten().flatten() {
        let starts =
            ["starts", "contacts"].map(|verb| format!("{verb} the server '{}': ", escape(name)));
        for key in ["command", "args", "url", "serverUrl", "httpUrl"] {
            for text in strings(&entry[key]) {
                assert!(
                    starts.iter().any(|start| is_shown(text, start)),
                    "{key} {text:?} of {name:?}: {effects:?}"
                );
            }
        }
    }
    for (section, key) in [
        ("search", "url"),
        ("model", "url"),
        ("telemetry", "otlp"),
        ("mqtt", "url"),
    ] {
        let url = root[section][key]
            .as_str()
            .filter(|url| url.starts_with("http"));
        assert!(
            url.is_none_or(|url| is_shown(url, "")),
            "{section}: {effects:?}"
        );
    }
    let mut found = ReferenceSet::default();
    let sections = root.as_object().into_iter().flatten();
    let expanded = sections.filter(|(name, _)| *name != "tools");
    expanded.for_each(|(_, value)| found.collect(value));
    for secret in found.secrets {
        let text = secret.effect(Path::new("/etc"), &environment);
        assert!(
            is_shown(&text, "") || text.len() > 1000,
            "{secret}: {effects:?}"
        );
    }
    for name in found.variables {
        assert!(
            is_shown(&format!("${{{name}}}"), "uses the value of"),
            "{name}"
        );
    }
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().into_iter().flatten();
    list.chain([value]).filter_map(Value::as_str)
}

/// Fails unless each server's line says whether it starts a program or contacts a machine.
fn expect_right_verbs(config: &Config, effects: &[ConfigEffect]) {
    for server in &config.servers {
        let verb = match &server.settings.connection {
            ServerConnection::Stdio(_) => "starts",
            ServerConnection::Http { .. } => "contacts",
        };
        let start = format!("{verb} the server '{}': ", escape(&server.settings.name));
        let mut lines = effects.iter().map(|effect| &effect.text);
        assert!(
            lines.any(|line| line.starts_with(&start)),
            "{start}: {effects:?}"
        );
    }
}

fn settings_text(config: &Config) -> String {
    let of_calls = (&config.limits, &config.policy, &config.retry, &config.tools);
    let own_tools = (&config.search, &config.documents, &config.resources);
    let own_tools = (own_tools, &config.skills);
    let of_tools = (own_tools, &config.servers);
    let of_commands = (&config.model, &config.serve, &config.journal);
    let text = format!("{:?}", (of_calls, of_tools, of_commands, config.secrets()));
    #[cfg(feature = "otlp")]
    let text = format!("{text}{:?}", config.telemetry);
    #[cfg(feature = "voice")]
    let text = format!("{text}{:?}", (&config.voice, &config.mqtt));
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// JSON of the keys and values that a configuration has, and what is nearly JSON.
    const PIECES: &str = r#"([{}\[\]:,]|"(mcpServers|servers|command|args|url|env|headers|search|serve|tokens|token|allow|policy|ask|limits|timeout|tools|name|\$\{KEY\}|\$\{NONE\}|5s|http://h/|\\u001b\[2K)"|-?[0-9]{1,3}|1e999|null|true| |\n|//|/\*|\*/|'|x){0,60}"#;

    /// A value that some key may have.
    const VALUE: &str = r#"("[a-z '\$\{\}]{0,6}"|"\$\{(KEY|NONE|EMPTY)\}"|"(tcp|http)://[a-z]{1,3}(:[0-9]{1,6})?/?"|"[0-9]{1,3}(s|ms|KiB)"|[0-9]{1,3}|true|\[\]|\["[a-z*]{1,3}"(,"[a-z*]{1,3}"){0,2}\]|\{\}|null)"#;
    const ENTRY: &str = r#"command|args|url|env|type|cwd|headers|timeout|disabled|override|sandbox|container|tools|pin"#;
    const SECTION: &str = r#""(limits":\{"(timeout|concurrency|perTool|maxResult)|policy":\{"(allow|ask|deny|flow)|search":\{"(url|key|backend)|model":\{"(url|key|system|provider|intents)|serve":\{"(bind|token|tokens|rate)|telemetry":\{"otlp|journal":\{"(file|keepDays|forward)|voice":\{"(asr|output|input)|mqtt":\{"(url|password)|documents":\{"folders|resources":\{"tools|skills":\{"folders)""#;

    proptest! {
        #[test]
        fn any_bytes_are_a_file(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            config(&bytes);
        }

        #[test]
        fn malformed_configurations_do_no_harm(text in PIECES) {
            config(text.as_bytes());
        }

        #[test]
        fn every_configuration_shows_what_it_does(
            servers in prop::collection::vec((0..2_usize, "[a-c]", prop::collection::vec((ENTRY, VALUE), 1..4)), 0..4),
            sections in prop::collection::vec((SECTION, VALUE), 0..3),
            other in prop::collection::vec((SECTION, VALUE), 0..3),
        ) {
            let server = |(_, name, pairs): &(usize, String, Vec<(String, String)>)| {
                let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("\"{name}\":{{{}}}", pairs.join(","))
            };
            let below = |wanted: usize| {
                let entries = servers.iter().filter(|(key, ..)| *key == wanted);
                let entries: Vec<String> = entries.map(server).collect();
                format!("\"{}\":{{{}}}", servers::KEYS[wanted], entries.join(","))
            };
            let file = |sections: &[(String, String)]| {
                let sections = sections.iter().map(|(start, value)| format!(",{start}:{value}}}"));
                format!("{{{},{}{}}}", below(0), below(1), sections.collect::<String>())
            };
            config(format!("{}\0{}", file(&sections), file(&other)).as_bytes());
        }
    }

    /// An error about a value quoted what its variable stands for.
    #[test]
    fn inputs_that_the_fuzzer_found_stay_fixed() {
        let long = "\u{5}".repeat(90);
        let file = format!(
            r#"{{"search":{{"backend":"${{KEY}}","key":"${{NONE}}"}},"limits":{{"oImeout":"5s","perTool":{{"x":{{"timeout":"${{KEY}}{long}"}}}}}}}}"#
        );
        config(file.as_bytes());
        config(file.replace('\u{5}', "\\u0005").as_bytes());
    }

    /// Shapes that once took quadratic time or memory.
    #[test]
    fn a_large_file_is_read_in_seconds() {
        const SIZE: usize = 1 << 20;
        let list = |item: &str, room: usize| item.repeat(room / item.len());
        let long = "k".repeat(SIZE / 2);
        let servers =
            (0..SIZE / 40).map(|number| format!("\"s{number:06}\":{{\"command\":\"x\"}},\n"));
        for text in [
            format!(
                "{{\"policy\":{{\"ask\":[{}]}}}}",
                list("\"a\",", SIZE - 100)
            ),
            format!(
                "{{\"limits\":{{\"{long}\":[{}]}}}}",
                list("1,", SIZE / 2 - 100)
            ),
            format!(
                "{{\"search\":{{\"x\":[{}]}}}}",
                list("\"${A}\",", SIZE - 100)
            ),
            format!("{{\"mcpServers\":{{{}}}}}", servers.collect::<String>()),
            format!(
                "{{\"model\":{{\"system\":\"{}\"}}}}",
                list("${KEY}{\\\"a\\\":", SIZE - 100)
            ),
            list("{\"a\":[", SIZE),
            list("\n", SIZE),
            format!("/*{}", list("*", SIZE - 2)),
        ] {
            let started = tokio::time::Instant::now();
            if let Ok(document) = ConfigDocument::parse(Path::new(FILE), text.as_bytes()) {
                let effects = effects::list_effects(&document, &environment);
                effects::difference(&effects[..effects.len() / 2], &effects);
                let reading =
                    configuration::ConfigReadOptions::new(&environment, SecretScope::Everything);
                drop(Config::resolve(document, reading));
            }
            let took = started.elapsed();
            assert!(took.as_secs() < 30, "{took:?}: {}", &text[..60]);
        }
    }
}
