//! `fakemcp [MODE[=VALUE]]…`: an MCP server on stdin and stdout that fails in the requested ways.
//!
//! | mode | what happens |
//! |---|---|
//! | `modern` | speaks only protocol 2026-07-28 |
//! | `dual` | speaks it and the older revisions, which start with `initialize`; without either mode, only the older ones |
//! | `version=V` | answers `initialize` with this revision |
//! | `strict` | exits unless the first message is `initialize` |
//! | `wait=MS` | waits this long before it starts |
//! | `failing=N:FILE` | the first N starts, counted in FILE, exit with status 1 |
//! | `mute` | reads, but answers nothing |
//! | `stdout=BYTES`, `stderr=BYTES` | writes these bytes at the start |
//! | `before=BYTES`, `end=BYTES` | `before` is written before every message; `end` replaces its final newline |
//! | `noise=N` | writes N stray lines per second to stdout |
//! | `flood-stderr=N:BYTES` | repeats BYTES on stderr at the start, N bytes in total |
//! | `after:METHOD=ACTION` | after METHOD was handled: `exit:N`, `signal:N`, `close-stdout`, `close-stdin`, `stop-reading` |
//! | `deaf` | ignores SIGTERM, SIGINT and the end of its input |
//! | `child`, `child=setsid` | starts a child that inherits stdout, in the same process group or in a new session |
//! | `list=FILE` | lists the tools in FILE (a JSON array), which is read for every `tools/list` |
//! | `many=N` | adds N generated tools; lists have pages of 1000 |
//! | `describe=N` | the description of `echo` has N bytes |
//! | `cursor=same`, `cursor=endless` | every page of a list has a next cursor: always the same, or always a new one |
//! | `storm=N` | sends N `tools/list_changed` notifications per second |
//! | `count=FILE` | the file to which the `count` tools append a byte for every run |
//! | `content=FILE` | offers the resources and prompts in FILE (its format: see `content.rs`), which is read for every request |
//! | `asking-content` | offers one resource and one prompt, whose text it asks the user for |
//! | `tasks`, `tasks=FILE` | offers the `task` tool (see `tasks.rs`); with FILE, tasks survive a restart |
//!
//! BYTES may contain the escapes `\n`, `\r`, `\\` and `\xNN`. The tools are listed in `tools.rs`.

mod content;
mod modes;
mod questions;
mod requests;
mod server;
mod start;
mod tasks;
mod tool_calls;
mod tools;

use modes::FaultModes;
use server::FakeServer;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let modes = match FaultModes::parse(&arguments) {
        Ok(modes) => modes,
        Err(argument) => {
            let error = format!("fakemcp: unknown mode or invalid value: {argument}\n");
            start::write_to_stderr(error.as_bytes());
            std::process::exit(2);
        }
    };
    start::prepare(&modes, &arguments);
    FakeServer::new(modes).run();
}
