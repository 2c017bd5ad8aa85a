//! Networking code that several crates share: builds HTTP clients, recognizes addresses of this
//! machine, splits streams into lines and server-sent events, and computes delays between retries.

mod backoff;
mod http;
mod line_buffer;
mod local_address;
mod split_command;
mod sse;

pub use backoff::{backoff, jitter};
pub use http::{CONNECT_TIMEOUT, client_builder, install_tls_provider, root_cause};
pub use line_buffer::{BufferedLine, LineBuffer};
pub use local_address::{is_local_host, is_local_url};
pub use split_command::split_command;
#[cfg(any(test, fuzzing))]
pub use sse::fuzz as fuzz_sse;
pub use sse::{SseEvent, SseParser};
