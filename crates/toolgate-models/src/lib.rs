//! Models that use tools.
//!
//! ```text
//!  a person ─▶ Conversation::turn ─▶ SentenceRouter ─▶ ModelClient::reply ─▶ Anthropic, Gemini, Ollama, OpenAI and its like
//!                  ▲      │              │    └─▶ toolgate-intents: first, last, alone or never
//!                  │      ▼              ▼
//!                  └─ ToolExecutor ◀─ calls that a sentence or the model asks for
//! ```
//!
//! Start reading in `conversation/`. One client serves all providers (`provider_client`); a provider is a folder with
//! its wire format: what it sends (`request`), what it understands of the stream that comes back (`stream`), both without a
//! socket, and one row of the table in `provider`. Tools are converted at the client's
//! edge, once per change of the tool set: [`Catalog`].

mod answer_source;
mod anthropic;
mod catalog;
mod choose;
mod client;
mod conversation;
mod error;
mod event;
mod gemini;
mod http;
mod learned;
mod lowering;
mod message;
pub mod ollama;
mod openai;
mod provider;
mod provider_client;
mod ranking;
mod reply_buffer;
mod rescue;
mod retry;
mod router;
mod settings;
#[cfg(test)]
mod tests;
mod think;
mod tokens;
mod wire_format;

pub use answer_source::AnswerSource;
pub use anthropic::AnthropicClient;
pub use catalog::{Catalog, CatalogTool, LeftOut, Offer};
pub use choose::{
    Choice, ChooseError, Chosen, Environment, Listed, check, choice, choose, connect, is_listed,
    sentences,
};
pub use client::{ModelClient, Reply, Request, Stop, Usage};
pub use conversation::{Conversation, Round, Saved, SavedError, Turn, TurnEnd, UsedTool};
pub use error::ModelError;
pub use event::{Event, Listener};
pub use gemini::GeminiClient;
pub use message::{AssistantMessage, CallArguments, Image, Message, ModelCall, Part, ToolResult};
pub use ollama::OllamaClient;
pub use openai::OpenAiClient;
pub use provider::Provider;
pub use router::SentenceRouter;
pub use settings::{ModelSettings, SchemaForm};
pub use toolgate_core::{ToolList, ToolReadiness, Toolbox};
