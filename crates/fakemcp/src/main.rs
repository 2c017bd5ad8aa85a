//! `fakemcp [MODE[=VALUE]]…`: an MCP server on stdin and stdout that fails in the requested ways.
//!
//! | mode | what happens |
//! |---|---|
//! | `modern`, `dual` | supports only 2026-07-28, or both eras (default: only the legacy era) |
//! | `version=V` | answers `initialize` with this revision |
//! | `strict` | exits unless the first message is `initialize` |
//! | `wait=MS` | starts with this delay |
//! | `failing=N:FILE` | the first N starts, counted in FILE, exit with status 1 |
//! | `mute` | reads, but answers nothing |
//! | `stdout=BYTES`, `stderr=BYTES` | writes these bytes at the start |
//! | `before=BYTES`, `end=BYTES` | writes these bytes before every message, or instead of its newline |
//! | `noise=N` | writes N stray lines per second to stdout |
//! | `flood=N:BYTES` | repeats BYTES on stderr at the start, N bytes in total |
//! | `after:METHOD=ACTION` | after METHOD was handled: `exit:N`, `signal:N`, `close-stdout`, `close-stdin`, `stop-reading` |
//! | `deaf` | ignores SIGTERM, SIGINT and the end of its input |
//! | `child`, `child=setsid` | starts a child that holds its stdout, in its group or in a session of its own |
//! | `list=FILE` | lists the tools in FILE (a JSON array), which is read for every `tools/list` |
//! | `many=N` | lists N more tools, in pages of 1000 |
//! | `describe=N` | the description of `echo` has N bytes |
//! | `cursor=same`, `cursor=endless` | lists an endless number of pages |
//! | `storm=N` | announces N changes of its tools per second |
//! | `count=FILE` | the file to which the `count` tools append a byte for every run |
//! | `content=FILE` | offers the resources and prompts in FILE (`content.rs` says its form), which is read for every request |
//! | `tasks`, `tasks=FILE` | has the tool `task` of `tasks.rs`; its tasks survive the process in FILE |
//!
//! BYTES may contain the escapes `\n`, `\r`, `\\` and `\xNN`. The tools are in `tools.rs`.

mod content;
mod modes;
mod requests;
mod server;
mod start;
mod tasks;
mod tools;

use modes::FaultModes;
use server::FakeServer;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let modes = match FaultModes::parse(&arguments) {
        Ok(modes) => modes,
        Err(wrong) => {
            start::write_to_stderr(format!("fakemcp has no mode '{wrong}'\n").as_bytes());
            std::process::exit(2);
        }
    };
    start::prepare(&modes, &arguments);
    FakeServer::new(modes).run();
}
