//! Test doubles of the providers' HTTP APIs.
//!
//! ```text
//!  a client ─▶ http ─▶ rules ─▶ 400 in the provider's own form, naming what is off
//!                        │
//!                        └────▶ the next answer of the script, in the provider's stream: whole, in pieces, late, cut
//! ```
//!
//! One listener on the loopback speaks Anthropic's Messages, Ollama's `/api/chat`, OpenAI's
//! chat completions and Google's `streamGenerateContent`, selected by the path. Every request
//! is kept with its bytes.

mod answer;
mod http;
mod rules;
mod send;
mod server;
mod speak;
mod third_parties;

pub use answer::{Answer, Script};
pub use http::RecordedRequest;
pub use rules::Api;
pub use server::{FakeLlm, FakeModel, Waiter};
pub use third_parties::third_parties;
