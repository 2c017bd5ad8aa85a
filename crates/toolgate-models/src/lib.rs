//! The conversation loop that lets a model use tools, and clients for the model providers.
//!
//! ```text
//!  a person ─▶ Conversation::turn ─▶ SentenceRouter ─┬─▶ ModelClient::reply ─▶ a provider
//!                  ▲      │                          └─▶ toolgate-intents, which needs no model
//!                  │      ▼
//!                  └─ ToolExecutor ◀─ the calls that the model or a sentence asks for
//! ```
//!
//! Start with [`select_model`], which picks a model from the settings and the environment.
//! [`connect`] turns its selection into a [`ConnectedModel`], which has a [`SentenceRouter`]. Pass
//! that router and a [`Toolbox`] to [`Conversation::new`]. [`Conversation::turn`] then asks the
//! model, runs the calls that it asks for, and repeats this until there is an answer. A
//! [`ModelListener`] receives text and calls as they arrive. [`CompletionRequest`] asks a model
//! once, without tools or a conversation.
//!
//! *Built-in sentences* (the provider `intents` in the settings) are requests of a known form,
//! such as "turn on the kitchen light", which `toolgate-intents` understands without a model.
//! The router decides whether sentences answer before the model, while the model is
//! unavailable, alone, or never.
//!
//! # Reading the code
//!
//! Start in `conversation/`. All providers share one client, `provider_client`. A provider is a row
//! of the table in `provider` and a folder with its wire format: `request` builds what is sent,
//! `stream` reads the reply, and neither touches a socket. A [`Catalog`] holds the tools in one
//! provider's form, and is rebuilt only when the tools change.

mod answer_source;
mod anthropic;
mod catalog;
mod choose;
mod client;
mod compat;
mod completion;
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
    ConnectedModel, Environment, ModelList, ModelSelection, ModelSelectionError, connect,
    is_listed, list_models, load_sentences, select_model,
};
pub use client::{ModelClient, ModelReply, ModelRequest, StopReason, TokenUsage};
pub use completion::{CompletionRequest, connect_client};
pub use conversation::{
    Conversation, RoundCall, RoundRecord, SavedConversation, SavedConversationError, TurnEnd,
    TurnRecord,
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
