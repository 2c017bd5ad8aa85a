//! What everything that talks over a network or a pipe shares, so that there is one answer to each
//! question: how an HTTP client is built, which addresses are this machine, how lines and
//! events are read from a stream, how long to wait before the next try.

mod backoff;
mod command_words;
mod http;
mod lines;
mod sse;
mod this_machine;

pub use backoff::{backoff, jittered};
pub use command_words::command_words;
pub use http::{CONNECT_TIMEOUT, client_builder, install_tls_provider, root_cause};
pub use lines::{Line, LineBuffer};
#[cfg(any(test, fuzzing))]
pub use sse::fuzz as fuzz_sse;
pub use sse::{SseEvent, SseParser};
pub use this_machine::{is_this_host, is_this_machine};
