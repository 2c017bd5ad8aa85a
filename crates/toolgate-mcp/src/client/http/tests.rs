//! Against servers on this machine.

mod answers;
mod server;
mod sessions;
mod steering;
mod streams;
