//! Which servers a call needs, and what it reports if one can't be started.

use serde_json::{Value, json};

use super::CatalogFolder;
use super::mcp::TestMcpClient;
use crate::gateway::RunningServe;

#[test]
fn a_call_reads_only_the_lists_with_its_name() {
    let home = CatalogFolder::new(&[]);
    let (one, two) = (home.tools("1", &["alpha"]), home.tools("2", &["beta"]));
    home.configure(&[("one", &[&one]), ("two", &[&two])]);
    home.run(&["list"]);
    // A command that reads the first server's list or agreement warns that it is broken.
    let catalog = home.path(".local/state/toolgate/catalogue");
    for entry in std::fs::read_dir(catalog).unwrap() {
        let path = entry.unwrap().path();
        if std::fs::read_to_string(&path).unwrap().contains("alpha") {
            std::fs::write(path, "{").unwrap();
        }
    }
    let done = home.run(&["call", "beta"]);
    assert_eq!((done.code, &*done.stderr), (Some(0), ""), "{done:?}");
    assert_eq!(["one", "two"].map(|name| home.starts(name)), [1, 2]);
    let list = home.run(&["list"]);
    assert!(list.stderr.contains("can't be used"), "{list:?}");
}

#[test]
fn ex8_a_tool_of_a_server_that_cannot_start_is_unavailable_with_the_reason() {
    let home = CatalogFolder::new(&[]);
    let servers = json!({ "lost": { "command": "no-such-mcp" }, "torn": { "command": "sh", "args": ["-c", "exit 3"] } });
    let config = json!({ "mcpServers": servers, "retry": { "attempts": 1 } });
    std::fs::write(home.path("house.json"), config.to_string()).unwrap();
    let starts = [
        (
            "lost__tool",
            "The lost__tool service is currently unavailable: its server 'lost' is not running: command 'no-such-mcp' was not found on the PATH",
        ),
        (
            "torn__tool",
            "The torn__tool service is currently unavailable: its server 'torn' is not running: ",
        ),
    ];
    let check = |who: &str, tool: &str, start: &str, text: &Value| {
        let text = text.as_str().unwrap_or_default();
        assert!(text.starts_with(start), "{who}: {text}");
        assert!(
            tool != "torn__tool" || text.contains("exit status 3"),
            "{who}: {text}"
        );
    };
    let gateway = RunningServe::start(home.command(&["serve"]));
    let mut client = TestMcpClient::new(home.folder.path());
    for (number, (tool, start)) in starts.into_iter().enumerate() {
        let called = home.run(&["call", tool]).json();
        assert_eq!(called["error_kind"], "unavailable", "{called}");
        check("call", tool, start, &called["error"]);
        check("serve", tool, start, &gateway.call(tool, "{}")["error"]);
        let params = json!({ "name": tool, "arguments": {} });
        let answer = client.ask(number as u64 + 1, "tools/call", &params);
        check("mcp", tool, start, &answer["content"][0]["text"]);
    }
}
