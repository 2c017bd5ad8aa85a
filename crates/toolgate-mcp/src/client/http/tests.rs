//! Tests of the HTTP transport against scripted servers on loopback.

mod answers;
mod redirects;
mod server;
mod sessions;
mod streams;
