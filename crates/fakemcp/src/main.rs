//! `fakemcp [MODE[=VALUE]]…`: an MCP server on stdin and stdout that fails in the requested ways.
//!
//! | mode | what happens |
//! |---|---|
//! | `modern`, `dual` | speaks 2026-07-28 only, or both eras (else: only what begins with `initialize`) |
//! | `version=V` | the revision answered to `initialize` |
//! | `strict` | exits when the first message is not `initialize` |
//! | `wait=MS` | starts that late |
//! | `failing=N:FILE` | the first N starts, counted in FILE, end with status 1 |
//! | `mute` | reads, and answers nothing |
//! | `stdout=BYTES`, `stderr=BYTES` | written at the start, as they are |
//! | `before=BYTES`, `end=BYTES` | written in front of every message, and instead of its newline |
//! | `noise=N` | N lines of junk a second on stdout |
//! | `flood=N:BYTES` | BYTES over and over on stderr at the start, N in all |
//! | `after:METHOD=ACTION` | once METHOD was handled: `exit:N`, `signal:N`, `close-stdout`, `close-stdin`, `stop-reading` |
//! | `deaf` | ignores SIGTERM, SIGINT and the end of its input |
//! | `child`, `child=setsid` | leaves a child behind that holds its stdout, in its group or in a session of its own |
//! | `list=FILE` | its tools are those of FILE (a JSON array), read anew for every `tools/list` |
//! | `many=N` | N more tools, in pages of 1000 |
//! | `describe=N` | the description of `echo` has N bytes |
//! | `cursor=same`, `cursor=endless` | pages without end |
//! | `storm=N` | N times a second it says that its tools changed |
//! | `count=FILE` | where `count` and its kin leave a byte for every run |
//!
//! BYTES know `\n`, `\r`, `\\` and `\xNN`. The tools are in `tools.rs`.

mod modes;
mod server;
mod start;
mod tools;

use modes::FaultModes;
use server::FakeServer;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let modes = match FaultModes::parse(&arguments) {
        Ok(modes) => modes,
        Err(wrong) => {
            start::say(format!("fakemcp knows no '{wrong}'\n").as_bytes());
            std::process::exit(2);
        }
    };
    start::begin(&modes, &arguments);
    FakeServer::new(modes).run();
}
