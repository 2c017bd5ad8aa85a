//! Models on the local machine, through Ollama's `/api/chat`.
//!
//! Tools can seem invisible to a model for many reasons here, and each has its place: a prompt that
//! the server cuts (`window`), thinking mixed with words (`think`), calls on any line (`stream`) or
//! written as text (`rescue`), a model that can't use tools at all (`errors`). [`diagnose`] finds
//! what can be found without a question; a turn reports the rest when it happens.

mod api;
mod diagnose;
mod errors;
mod request;
mod stream;
mod tools;
mod window;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use self::api::{ModelDetails, deadline_in};
pub use self::api::{ModelInfo, ToolUse};
pub(crate) use self::api::{URL, headers, is_same};
pub use self::diagnose::{OllamaFinding, diagnose};
use self::request::ChatRequestOptions;
use self::stream::OllamaReader;
pub use self::tools::to_qwen;
use self::tools::{QWEN, log_converted};
use self::window::{OllamaWindow, PromptReport};
use crate::catalog::ToolDialect;
use crate::compat::RequestCompat;
use crate::http::ErrorResponse;
use crate::provider_client::ProviderClient;
use crate::wire_format::{FormatCore, StreamFraming, ToolEncoder, WireFormat};
use crate::{Catalog, ModelError, ModelReply, ModelRequest, ModelSettings, Provider};

// Short, because the question is asked even without the model's details.
const DETAILS_TIMEOUT: Duration = Duration::from_secs(2);

/// A client for Ollama's own API.
///
/// The address comes from the settings; the environment is not read.
pub type OllamaClient = ProviderClient<OllamaFormat>;

pub struct OllamaFormat {
    core: FormatCore<OllamaCompat>,
    settings: ModelSettings,
    window: OllamaWindow,
    shown: OnceLock<ModelDetails>,
    // The person was told that the model may not know what tools are.
    has_warned_about_tools: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OllamaCompat {
    sends_think: bool,
}

impl RequestCompat for OllamaCompat {
    fn adapted_to(self, _status: u16, message: &str) -> Self {
        let is_refused = message.to_lowercase().contains(errors::NO_THINKING);
        Self {
            sends_think: self.sends_think && !is_refused,
        }
    }

    fn notices(self, _before: Self, model: &str, _error: &ModelError) -> Vec<String> {
        vec![format!(
            "the model '{model}' can't think before it answers and is asked to answer directly"
        )]
    }
}

impl OllamaClient {
    pub fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        let sends_think = settings.think.is_some();
        let mut core =
            FormatCore::new(Provider::Ollama, settings, 0, OllamaCompat { sends_think })?;
        core.rescue = settings.rescue;
        let format = OllamaFormat {
            core,
            settings: settings.clone(),
            window: OllamaWindow::new(settings.context_tokens),
            shown: OnceLock::new(),
            has_warned_about_tools: AtomicBool::new(false),
        };
        Ok(Self::with_format(format, settings))
    }

    /// All models of a server and what they can do, asked for within `limit` in total. An empty
    /// address means this machine.
    pub async fn probe(
        settings: &ModelSettings,
        limit: Duration,
    ) -> Result<Vec<ModelInfo>, ModelError> {
        let (http, deadline) = (api::http(settings)?, deadline_in(limit));
        let models = api::models(&http, deadline).await?;
        Ok(api::model_infos(&http, models, deadline).await)
    }
}

impl OllamaFormat {
    fn model(&self) -> &str {
        &self.core.options.model
    }

    async fn check_window(&self, request: &ModelRequest<'_>, reply: &ModelReply) -> Option<String> {
        let estimate = request::prompt_tokens(request);
        let read = PromptReport {
            estimate,
            // The window never shrinks, so this is the one that was requested, unless another
            // question has needed more since.
            window: self.window.fit(estimate, self.settings.max_tokens),
            read: reply.usage.input,
        };
        let held = match self.window.may_be_cut(read) {
            true => self.loaded_window(request.deadline).await,
            false => None,
        };
        self.window.check(read, held)
    }

    async fn loaded_window(&self, deadline: Instant) -> Option<usize> {
        let deadline = deadline.min(deadline_in(DETAILS_TIMEOUT));
        let loaded = api::loaded(&self.core.http, self.model(), deadline).await;
        let held = loaded.ok().flatten().and_then(|it| it.context_length);
        if held.is_none() {
            self.window.mark_window_unreported();
        }
        held
    }
}

impl WireFormat for OllamaFormat {
    const PROVIDER: Provider = Provider::Ollama;
    const DIALECT: &'static ToolDialect = &QWEN;
    const ENCODE_TOOL: ToolEncoder = crate::openai::encode_tool;
    const FRAMING: StreamFraming = StreamFraming::Lines;
    const CUT_MESSAGE: &'static str = "the stream ended before the model was done";

    type Compat = OllamaCompat;
    type Reader<'a> = OllamaReader<'a>;

    fn core(&self) -> &FormatCore<OllamaCompat> {
        &self.core
    }

    fn path(&self) -> &str {
        "/api/chat"
    }

    fn window(&self) -> usize {
        self.window.largest()
    }

    fn log_catalog(catalog: &Catalog) {
        log_converted(catalog);
    }

    fn body(&self, request: &ModelRequest<'_>, compat: OllamaCompat) -> Result<Vec<u8>, String> {
        let wanted = ChatRequestOptions {
            window: self
                .window
                .fit(request::prompt_tokens(request), self.settings.max_tokens),
            think: self.settings.think.filter(|_| compat.sends_think),
            images: self.shown.get().is_some_and(|shown| shown.can("vision")),
        };
        request::body(request, self.model(), &self.settings, wanted)
            .map_err(|error| format!("the request can't be written as JSON ({error})"))
    }

    fn reader<'a>(&self, request: &ModelRequest<'a>) -> OllamaReader<'a> {
        OllamaReader::new(request.tools)
    }

    fn status(error: &Value) -> u16 {
        let status = error.get("status").or_else(|| error.get("status_code"));
        status
            .and_then(Value::as_u64)
            .and_then(|status| u16::try_from(status).ok())
            .unwrap_or(500)
    }

    fn explain(&self, failure: ErrorResponse) -> ModelError {
        // Comes first: the error quotes part of the call, which may contain any words.
        if errors::is_unparsable_call(&failure) {
            return errors::unparsable_call_error(self.model(), &self.settings, &failure);
        }
        errors::explain(self.model(), failure)
    }

    // A server that can't describe the model is asked the question anyway.
    fn prepare(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        if self.shown.get().is_some() {
            return Box::pin(std::future::ready(()));
        }
        Box::pin(async move {
            let deadline = deadline.min(deadline_in(DETAILS_TIMEOUT));
            let shown = match api::show(&self.core.http, self.model(), deadline).await {
                Ok(shown) => shown,
                // Then the question fails too, and says why.
                Err(ModelError::Unreachable { .. } | ModelError::Model { .. }) => return,
                Err(error) => {
                    tracing::debug!(model = %toolgate_core::escape(self.model()), %error, "Ollama says nothing about the model");
                    ModelDetails::default()
                }
            };
            // Two questions at once may both have asked; the first answer stays.
            self.window.learn(self.shown.get_or_init(|| shown).context);
        })
    }

    // A server may silently leave tools out if the model has no place for them. Said only once.
    fn notice_before(&self, request: &ModelRequest<'_>) -> Option<String> {
        let shown = self.shown.get();
        let can_not = shown.is_some_and(|it| it.capabilities.is_some() && !it.can("tools"));
        let has_tools = !request.forbid_tools && !request.tools.is_empty();
        if !can_not || !has_tools || self.has_warned_about_tools.swap(true, Ordering::Relaxed) {
            return None;
        }
        let model = toolgate_core::escape(self.model());
        Some(format!(
            "the model '{model}' can't use tools, according to Ollama, and may never see them ('toolgate doctor' says what helps)"
        ))
    }

    fn notice_after<'a>(
        &'a self,
        request: &'a ModelRequest<'_>,
        reply: &'a ModelReply,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.check_window(request, reply))
    }
}

#[cfg(test)]
mod tests;
