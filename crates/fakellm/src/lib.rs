//! A test double of the model providers' HTTP APIs.
//!
//! ```text
//!  a client ─▶ http ─▶ rules ─▶ 400 in the provider's own form, naming what is invalid
//!                        │
//!                        └────▶ the next answer of the script, as the provider's stream:
//!                               whole, in pieces, late, or cut
//! ```
//!
//! [`FakeLlm`] listens on loopback and implements Anthropic's Messages, Ollama's `/api/chat`,
//! OpenAI's chat completions and Google's `streamGenerateContent`; the path selects the API. It
//! records every request with its bytes.

mod answer;
mod http;
mod render;
mod rules;
mod send;
mod server;
mod third_parties;

pub use answer::{Answer, Script};
pub use http::RecordedRequest;
pub use rules::Api;
pub use server::{FakeLlm, FakeModel, RequestWaiter};
pub use third_parties::third_parties;
