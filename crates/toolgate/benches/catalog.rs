//! The program from start to exit, with ten configured servers of which three have never answered:
//! `cargo bench -p toolgate --bench catalog`.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on says where"
)]

use std::path::Path;
use std::process::{Command, Stdio};

use divan::Bencher;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

fn main() {
    divan::main();
}

/// A home whose servers have been listed once; the mute ones have never answered,
/// and are listed first.
struct BenchFolder(TempDir);

impl BenchFolder {
    fn new(good: usize, mute: usize) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let mut servers = Map::new();
        for number in 0..good + mute {
            let name = format!("server{number}");
            let tools: Vec<Value> = (0..10).map(|tool| definition(&name, tool)).collect();
            let list = home.write(&format!("{name}.tools"), &json!(tools).to_string());
            let line = match number < mute {
                true => "exec sleep 1000".to_owned(),
                false => format!("exec '{}' \"$@\"", fakemcp::program().display()),
            };
            let program = home.program(&name, &line);
            servers.insert(
                name,
                json!({ "command": program, "args": [format!("list={list}")] }),
            );
        }
        home.write("house.json", &json!({ "mcpServers": servers }).to_string());
        home.run(&["list"]);
        home
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn program(&self, name: &str, line: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.write(name, &format!("#!/bin/sh\n{line}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn run(&self, arguments: &[&str]) {
        let folder: &Path = self.0.path();
        let status = Command::new(env!("CARGO_BIN_EXE_toolgate"))
            .args(["--config", "house.json"])
            .args(arguments)
            .current_dir(folder)
            .env("HOME", folder)
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "{arguments:?}");
    }
}

/// A tool of the size that real servers have.
fn definition(server: &str, number: usize) -> Value {
    json!({ "name": format!("{server}_tool{number}"), "description": "Does what its name says. ".repeat(10),
        "inputSchema": { "type": "object", "required": [], "additionalProperties": false, "properties": {
            "path": { "type": "string", "description": "Where it is, relative to the root of the project" },
            "limit": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 },
            "state": { "type": "string", "enum": ["open", "closed", "all"] },
            "labels": { "type": "array", "items": { "type": "string" } } } } })
}

#[divan::bench(sample_count = 30, sample_size = 1)]
fn list(bencher: Bencher<'_, '_>) {
    let home = BenchFolder::new(7, 3);
    bencher.bench_local(|| home.run(&["list"]));
}

#[divan::bench(sample_count = 30, sample_size = 1)]
fn call_of_a_local_tool(bencher: Bencher<'_, '_>) {
    let home = BenchFolder::new(7, 3);
    bencher.bench_local(|| home.run(&["call", "echo", "a=1"]));
}

#[divan::bench(sample_count = 30, sample_size = 1)]
fn call_of_a_remote_tool(bencher: Bencher<'_, '_>) {
    let home = BenchFolder::new(7, 3);
    bencher.bench_local(|| home.run(&["call", "server9_tool1"]));
}

#[divan::bench(sample_count = 30, sample_size = 1)]
fn call_of_a_remote_tool_whose_server_is_the_only_one(bencher: Bencher<'_, '_>) {
    let home = BenchFolder::new(1, 0);
    bencher.bench_local(|| home.run(&["call", "server0_tool1"]));
}
