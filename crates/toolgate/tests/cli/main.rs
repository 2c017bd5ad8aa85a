//! The program as a person or a script uses it, one module per topic.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod add; // `add` and the first start of the added server
mod approvals; // who may approve a call, and a hostile server that tries to
mod ask; // `ask`: each provider, none, pipes, secrets
mod audit; // `calls --verify` and `--export`, and what `replay` refuses
mod call; // `call`: all forms of input, envelopes, exit codes
mod catalog; // what is remembered about servers between runs
mod chat; // `chat`: in a pipe, and on the screen of a terminal
mod children; // no server outlives the program
mod clients; // the SDKs and the inspector as clients of `mcp`
mod configuration; // where the file is found, and what can be wrong with it
mod confinement; // what a hostile server can't reach
mod consent; // what a model may do without a person
mod container; // servers in podman containers
mod content; // `resources`, `read`, `prompts` and `prompt`
mod demo; // scripts for `demo`, and the Z-Wave server with its own broker
mod documentation; // the examples in docs/ work
mod editing; // what `add`, `remove` and `import` write and keep
mod first_start; // real servers, added over a slow connection and interrupted
mod gateway; // a running `serve`, and a minimal HTTP client
mod info_commands; // `list`, `inspect`, `doctor`, `init`, `completions`, help
mod interruption; // Ctrl-C, timeouts, broken pipes, approvals
mod journal; // the journal, `calls`, `replay`
mod keyring; // `secret`, and a real Secret Service
mod llm; // test doubles of the providers
mod logs; // docs/logs.md matches what is logged
mod mcp; // `mcp`: what stdout carries, filters, how it ends
mod model; // how the model is chosen, and what `doctor` reports about it
mod prompt; // what happens while `chat` waits for a line
mod remote; // `--at`: commands through a running gateway
mod rendering; // output on a terminal: wrapped lines, Markdown, the banner of the demo
mod requirements; // docs/requirements.md matches the existing tests
mod run; // runs the program in its own folder
mod sampling; // servers that ask the model of the configuration
mod sandbox; // what a confined server can't reach
mod secrets; // `${file:…}`, `${cmd:…}`: fetched, hidden, followed
mod serve; // `serve`: how it starts, what it refuses, how it ends
mod server_logs; // what servers of `mcp` log outside of calls
mod servers; // `list`, `inspect`, `call`, `doctor` and `mcp` with MCP servers
mod terminal; // the program on a terminal screen
mod trust; // `trust`, for servers of a file in the working folder
mod turns; // turns of `ask`: tools, endings, saved conversations
mod untrusted; // a file in the working folder can do nothing before it is trusted
mod vocabulary; // the rules for names and wording
mod voice; // `voice`: files, stdin, text, refusals, endings; `doctor` on its engines
