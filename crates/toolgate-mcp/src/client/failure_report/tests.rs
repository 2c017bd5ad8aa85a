use toolgate_core::{FunctionTool, ToolDefinition, ToolError, ToolManager};

use super::*;
use crate::{SecretHeaders, ServerProgram};

fn stdio(name: &str, command: &str) -> ServerSettings {
    let program = ServerProgram {
        command: command.to_owned(),
        ..ServerProgram::default()
    };
    ServerSettings::new(name, ServerConnection::Stdio(program))
}

fn http(name: &str, url: &str) -> ServerSettings {
    let connection = ServerConnection::Http {
        url: url.to_owned(),
        headers: SecretHeaders::default(),
    };
    ServerSettings::new(name, connection)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn mc4_the_block_is_exactly_the_one_of_the_contract() {
    let settings = stdio("zwave", "zwave-mcp-server");
    let block = FailureReport {
        settings: &settings,
        attempts: 3,
        stderr: &names(&["[stderr output here]"]),
        file: Some(Path::new("toolgate.json")),
        local: &names(&["datetime", "search", "volume"]),
        others: &[],
        redactor: &Redactor::default(),
    };
    let expected = "\
❌ Failed to initialize MCP tools after 3 attempts
   Reason: Connection to stdio server 'zwave' failed
   MCP Server stderr: [stderr output here]
   Check: MQTT broker running, zwave-mcp-server installed
⚠️ Continuing with local tools only (datetime, search, volume)";
    assert_eq!(block.render(), expected);
}

#[test]
fn mc4_the_check_of_the_zwave_server_is_its_broker_however_it_is_run() {
    let check = |command: &str, args: &[&str], own: Option<&str>| {
        let mut settings = stdio("zwave", command);
        if let ServerConnection::Stdio(program) = &mut settings.connection {
            program.args = names(args);
        }
        settings.check = own.map(str::to_owned);
        let block = FailureReport {
            settings: &settings,
            attempts: 3,
            stderr: &[],
            file: None,
            local: &[],
            others: &[],
            redactor: &Redactor::default(),
        };
        block.check()
    };
    let broker = "MQTT broker running, zwave-mcp-server installed";
    for (command, args) in [
        ("zwave-mcp-server", &[][..]),
        ("/opt/bin/zwave-mcp-server", &["--log-level", "debug"]),
        ("zwave-mcp-server.exe", &[]),
        ("toolgate", &["zwave-mcp-server"]),
        ("/usr/local/bin/toolgate", &["-v", "zwave-mcp-server"]),
    ] {
        assert_eq!(check(command, args, None), broker, "{command} {args:?}");
    }
    assert_eq!(
        check("zwave-mcp-server", &[], Some("the garage")),
        "the garage"
    );
    for (command, args) in [
        ("zwave-mcp-servers", &[][..]),
        ("npx", &["my-zwave-mcp-server"]),
        ("toolgate", &["mcp"]),
    ] {
        let usual = format!(
            "'{command}' installed and on the PATH, settings of 'zwave' in the configuration"
        );
        assert_eq!(check(command, args, None), usual);
    }
}

#[test]
fn mc4_the_block_has_its_variants() {
    let (broken, remote) = (stdio("x", "npx"), http("far", "https://example.org/mcp"));
    let redactor = Redactor::new(["hunter2".to_owned()]);
    let block = FailureReport {
        settings: &broken,
        attempts: 1,
        stderr: &names(&[
            "Traceback:",
            "  File \"a\"",
            "",
            "KeyError: hunter2\u{1b}[0m",
            "",
        ]),
        file: Some(Path::new("/etc/toolgate.json")),
        local: &[],
        others: &names(&["a", "b"]),
        redactor: &redactor,
    };
    let expected = "\
❌ Failed to initialize MCP tools after 1 attempt
   Reason: Connection to stdio server 'x' failed
   MCP Server stderr: Traceback:
        File \"a\"
      
      KeyError: [REDACTED]\\u{1b}[0m
   Check: 'npx' installed and on the PATH, settings of 'x' in /etc/toolgate.json
⚠️ Continuing without 'x': local tools (none) and servers: a, b";
    assert_eq!(block.render(), expected);

    let block = FailureReport {
        settings: &remote,
        stderr: &[],
        file: None,
        ..block
    };
    let text = block.render();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[1],
        "   Reason: Connection to http server 'far' failed"
    );
    assert_eq!(lines[2], "   MCP Server stderr: (nothing on stderr)");
    assert_eq!(
        lines[3],
        "   Check: https://example.org/mcp reachable, headers of 'far' in the configuration"
    );
}

#[test]
fn a_half_written_cache_wins_over_the_configured_check() {
    let mut settings = stdio("docs", "npx");
    let ServerConnection::Stdio(program) = &mut settings.connection else {
        unreachable!()
    };
    program.args = names(&["-y", "firecrawl-mcp"]);
    let cache = ("npm_config_cache".to_owned(), "/cache".to_owned());
    program.env = [cache].into();
    settings.check = Some("the weather".to_owned());
    let check = |stderr: &str| {
        let stderr = names(&[stderr]);
        startup_advice(&settings, &stderr, None, &Redactor::default())
    };
    assert_eq!(
        check("npm error Invalid Version: "),
        "the npx cache of this package is half-written; delete it with: rm -rf /cache/_npx/12b05d58670d8359"
    );
    assert_eq!(check("npm error 404 Not Found"), "the weather");
}

#[test]
fn mc4_stderr_is_the_last_twenty_lines_and_four_kibibytes() {
    let tail = |lines: &[String]| stderr_tail(lines, &Redactor::default());
    let many: Vec<String> = (0..1000).map(|n| format!("line {n}")).collect();
    let last = tail(&many);
    assert_eq!(
        (last.len(), last[0].as_str(), last[19].as_str()),
        (20, "line 980", "line 999")
    );

    let wide: Vec<String> = (0..10).map(|n| format!("{n}{}", "ä".repeat(499))).collect();
    assert_eq!(tail(&wide), wide[6..]);

    let endless = [format!("begin{}end", "ä".repeat(10_000))];
    let cut = tail(&endless).concat();
    assert!(cut.starts_with("…ä") && cut.ends_with("end") && cut.len() <= MAX_STDERR_BYTES + 3);

    assert_eq!(tail(&names(&["", " ", ""])), names(&[]));
    // One event is one line: nothing a server writes creates another.
    assert_eq!(
        tail(&names(&["a\nERROR forged\r"])),
        names(&["a\\nERROR forged"])
    );
}

#[test]
fn a_possible_login_in_a_url_is_hidden() {
    for (url, shown) in [
        ("http://127.0.0.1:9/mcp", "http://127.0.0.1:9/mcp"),
        ("http://127.0.0.1:9", "http://127.0.0.1:9"),
        (
            "https://me:secret@example.org/a@b?key=1#x",
            "https://example.org/a@b",
        ),
        ("nonsense?x", "nonsense"),
    ] {
        assert_eq!(without_login(url), shown);
    }
}

#[test]
fn mc4_local_tools_are_named_builtin_ones_first() {
    let manager = ToolManager::new();
    for (name, source) in [
        ("mine", ToolSource::Custom),
        ("volume", ToolSource::Builtin),
        ("canned", ToolSource::Mock),
        ("remote", ToolSource::Mcp("a".to_owned())),
        ("datetime", ToolSource::Builtin),
    ] {
        let definition =
            ToolDefinition::builder(name, "d", serde_json::json!({ "type": "object" }));
        let run = async |_: serde_json::Value, _| Ok::<_, ToolError>("");
        manager.add(FunctionTool::with_definition(definition.source(source), run).unwrap());
    }
    let expected = names(&["datetime", "volume", "canned", "mine"]);
    assert_eq!(local_tool_names(&manager.tools()), expected);
}
