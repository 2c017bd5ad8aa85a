//! The program as a person or a script uses it, one module per topic.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod adding; // `add` and the first start of what it adds
mod approvals; // who may approve a call, and a server that tries to
mod ask; // `ask`: each provider, none, pipes, secrets
mod at; // `--at`: the same by a gateway that runs already
mod audit; // `calls --verify` and `--export`, and what `replay` refuses
mod call; // `call`: input in every form, envelopes, exit codes
mod catalog; // what is remembered of servers between runs
mod chat; // `chat`: in a pipe, and on the screen of a terminal
mod children; // no server outlives the program
mod clients; // the SDKs and the inspector as clients of `mcp`
mod configuration; // where the file is found, what is wrong with it
mod confinement; // what a hostile server can't reach
mod consent; // what a model may do without a person
mod container; // servers in containers of podman
mod content; // `resources`, `read`, `prompts` and `prompt`
mod demo; // `demo` by a script, and the Z-Wave server on a broker of its own
mod documentation; // what the pages under docs/ show
mod editing; // `add`, `remove`, `import`: what is written, and what is kept
mod endings; // Ctrl-C, timeouts, broken pipes, approvals
mod first_start; // real servers added over a slow line, and interrupted
mod gateway; // a running `serve`, and a few words of HTTP
mod journal; // the journal, `calls`, `replay`
mod keyring; // `secret`, and a real Secret Service
mod llm; // doubles of the providers
mod logs; // docs/logs.md against what is logged
mod looking; // `list`, `inspect`, `doctor`, `init`, `completions`, help
mod mcp; // `mcp`: what stdout carries, filters, how it ends
mod model; // which model: the configuration, the working folder, `doctor`
mod prompt; // what happens while `chat` waits for a line
mod reading; // what a person reads at a terminal: wrapped lines, Markdown, the banner of the demo
mod requirements; // docs/requirements.md against the tests that exist
mod run; // runs the program in a folder of its own
mod sampling; // servers that ask the model of the configuration
mod sandbox; // what a confined server can't reach
mod secrets; // `${file:…}`, `${cmd:…}`: fetched, hidden, followed
mod serve; // `serve`: how it starts, what it refuses, how it ends
mod servers; // `list`, `inspect`, `call`, `doctor` and `mcp` with MCP servers
mod terminal; // the program on the screen of a terminal
mod trust; // servers of a file in the working folder
mod turns; // of `ask`: which tools, how they end, what is kept of them
mod untrusted; // what a file in the working folder can do before anybody agrees to it: nothing
mod vocabulary; // the rules for names and wording
mod voice; // `voice`: files, stdin, text, what it refuses, how it ends; `doctor` on its engines
