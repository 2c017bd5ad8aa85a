//! What everything that talks over a network or a pipe shares, so that there is one answer to each
//! question: how an HTTP client is built, which addresses are this machine, how long to wait
//! before the next try.

mod backoff;
mod http;
mod this_machine;

pub use backoff::{backoff, jittered};
pub use http::{CONNECT_TIMEOUT, client_builder, install_tls_provider, root_cause};
pub use this_machine::{is_this_host, is_this_machine};
