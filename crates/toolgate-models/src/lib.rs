//! Lets models use tools: the conversation loop, clients for four kinds of providers, and the
//! sentences that answer without a model.
//!
//! ```text
//!  a person ─▶ Conversation::turn ─▶ SentenceRouter ─▶ ModelClient::reply ─▶ Anthropic, Gemini, Ollama, OpenAI and its like
//!                  ▲      │              │    └─▶ toolgate-intents: first, last, alone or never
//!                  │      ▼              ▼
//!                  └─ ToolExecutor ◀─ calls that a sentence or the model asks for
//! ```
//!
//! To use it, let [`select_model`] pick a model, [`connect`] to it, and give the [`SentenceRouter`]
//! of the [`ConnectedModel`] and a [`Toolbox`] to [`Conversation::new`]. [`Conversation::turn`]
//! asks the model, runs the calls it asks for, and repeats that until there is an answer. A
//! [`ModelListener`] sees the words and the calls as they happen.
//!
//! The router decides who answers: the model, or *sentences*. Those are commands and
//! questions of a known form, such as "turn on the kitchen light", which `toolgate-intents`
//! understands without a model.
//!
//! To read the code, start in `conversation/`. All providers share one client (`provider_client`).
//! A provider is a row of the table in `provider` and a folder with its wire format: what it sends
//! (`request`) and how it reads the reply (`stream`), both without a socket. A [`Catalog`] holds
//! the tools in one provider's form. It is made once per change of the tools.

mod answer_source;
mod anthropic;
mod catalog;
mod choose;
mod client;
mod compat;
mod conversation;
mod error;
mod event;
mod gemini;
mod http;
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
mod transcript;
mod wire_format;

pub use answer_source::AnswerSource;
pub use anthropic::AnthropicClient;
pub use catalog::{Catalog, CatalogTool, ExcludedTool, OfferedTools};
pub use choose::{
    ConnectedModel, Environment, ModelList, ModelSelection, ModelSelectionError, check, connect,
    is_listed, load_sentences, select_model,
};
pub use client::{ModelClient, ModelReply, ModelRequest, StopReason, TokenUsage};
pub use conversation::{
    Conversation, RoundRecord, SavedConversation, SavedConversationError, TurnEnd, TurnRecord,
    UsedTool,
};
pub use error::ModelError;
pub use event::{ModelEvent, ModelListener};
pub use gemini::GeminiClient;
pub use message::{
    AssistantMessage, CallArguments, ImageData, Message, MessagePart, ModelCall, ToolResult,
};
pub use ollama::OllamaClient;
pub use openai::OpenAiClient;
pub use provider::Provider;
pub use router::SentenceRouter;
pub use settings::{ModelSettings, SchemaForm};
pub use toolgate_core::{ToolList, ToolReadiness, Toolbox};
