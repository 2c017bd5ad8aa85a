//! Models that use tools.
//!
//! ```text
//!  a person ─▶ Conversation::turn ─▶ ModelClient::reply ─▶ Anthropic, Ollama, OpenAI and its like, intents
//!                  ▲      │              │
//!                  │      ▼              ▼
//!                  └─ ToolExecutor ◀─ calls the model asks for
//! ```
//!
//! Start reading in `conversation/`. Each client is three small parts: what it sends (`request`), what it understands of the
//! stream that comes back (`stream`), both without a socket, and the wire between them. Tools are converted at the client's
//! edge, once per change of the tool set: [`Catalog`].

mod anthropic;
mod catalog;
mod choose;
mod client;
mod conversation;
mod error;
mod event;
mod http;
mod intents;
mod learned;
mod lowering;
mod message;
pub mod ollama;
mod openai;
mod provider;
mod ranking;
mod readiness;
mod rescue;
mod retry;
#[cfg(test)]
mod samples;
mod settings;
mod think;
mod tokens;
mod toolbox;
mod words;

pub use anthropic::AnthropicClient;
pub use catalog::{Catalog, CatalogTool, LeftOut, Offer};
pub use choose::{
    Choice, ChooseError, Chosen, Environment, Listed, check, choice, choose, connect, is_listed,
};
pub use client::{ModelClient, Reply, Request, Stop, Usage};
pub use conversation::{Conversation, Round, Saved, SavedError, Turn, TurnEnd, UsedTool};
pub use error::ModelError;
pub use event::{Event, Listener};
pub use intents::{FastPath, IntentsClient, Pack, PackError, StandIn};
pub use message::{AssistantMessage, CallArguments, Image, Message, ModelCall, Part, ToolResult};
pub use ollama::OllamaClient;
pub use openai::OpenAiClient;
pub use provider::Provider;
pub use readiness::ToolReadiness;
pub use settings::{ModelSettings, SchemaForm};
pub use toolbox::{ToolList, Toolbox};
