//! Models on the local machine, through Ollama's `/api/chat`.
//!
//! With Ollama, a model may fail to use tools for many reasons. Each is handled in one module:
//!
//! - `window`: the server cuts the prompt.
//! - `crate::think`: thinking is mixed with text.
//! - `stream`: calls may be on any line.
//! - `crate::rescue`: calls are written as text.
//! - `errors`: the model can't use tools at all.
//!
//! [`diagnose`] reports the problems that can be found without a chat request. A turn reports the
//! others when they occur.

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

// Short, because the chat request is sent even if the model's details aren't known.
const DETAILS_TIMEOUT: Duration = Duration::from_secs(2);

// `OllamaWindow` decides about the window, so `FormatCore` has none.
const NO_WINDOW: usize = 0;

/// A client for Ollama's own API.
///
/// The address comes from the settings; the environment is not read.
pub type OllamaClient = ProviderClient<OllamaFormat>;

/// Ollama's wire format, for [`OllamaClient`].
pub struct OllamaFormat {
    core: FormatCore<OllamaCompat>,
    settings: ModelSettings,
    window: OllamaWindow,
    details: OnceLock<ModelDetails>,
    // The user was told that the model may not be able to use tools.
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
        let mut core = FormatCore::new(
            Provider::Ollama,
            settings,
            NO_WINDOW,
            OllamaCompat { sends_think },
        )?;
        core.rescue = settings.rescue;
        let format = OllamaFormat {
            core,
            settings: settings.clone(),
            window: OllamaWindow::new(settings.context_tokens),
            details: OnceLock::new(),
            has_warned_about_tools: AtomicBool::new(false),
        };
        Ok(Self::with_format(format, settings))
    }

    /// Lists all models of a server and what they can do. `timeout` is for all requests together.
    /// An empty address in the settings means this machine.
    pub async fn probe(
        settings: &ModelSettings,
        timeout: Duration,
    ) -> Result<Vec<ModelInfo>, ModelError> {
        let (http, deadline) = (api::build_http(settings)?, deadline_in(timeout));
        let models = api::list_models(&http, deadline).await?;
        Ok(api::describe_models(&http, models, deadline).await)
    }
}

impl OllamaFormat {
    fn model(&self) -> &str {
        &self.core.options.model
    }

    async fn check_window(&self, request: &ModelRequest<'_>, reply: &ModelReply) -> Option<String> {
        let estimate = request::prompt_tokens(request);
        let report = PromptReport {
            estimate,
            // `fit` never shrinks the window, so this is the size that was requested, unless
            // another chat request has needed more since.
            window: self.window.fit(estimate, self.settings.max_tokens),
            input_tokens: reply.usage.input,
        };
        let loaded_window = match self.window.may_be_cut(report) {
            true => self.loaded_window(request.deadline).await,
            false => None,
        };
        self.window.check(report, loaded_window)
    }

    async fn loaded_window(&self, deadline: Instant) -> Option<usize> {
        let deadline = deadline.min(deadline_in(DETAILS_TIMEOUT));
        let loaded = api::find_running(&self.core.http, self.model(), deadline).await;
        let loaded_window = loaded.ok().flatten().and_then(|it| it.context_length);
        if loaded_window.is_none() {
            self.window.mark_window_unreported();
        }
        loaded_window
    }
}

impl WireFormat for OllamaFormat {
    const PROVIDER: Provider = Provider::Ollama;
    const DIALECT: &'static ToolDialect = &QWEN;
    const ENCODE_TOOL: ToolEncoder = crate::openai::encode_tool;
    const FRAMING: StreamFraming = StreamFraming::Lines;
    const TRUNCATED_MESSAGE: &'static str = "the stream ended before the model was done";

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
        let options = ChatRequestOptions {
            window: self
                .window
                .fit(request::prompt_tokens(request), self.settings.max_tokens),
            think: self.settings.think.filter(|_| compat.sends_think),
            images: self
                .details
                .get()
                .is_some_and(|details| details.can("vision")),
        };
        request::body(request, self.model(), &self.settings, options)
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

    fn to_model_error(&self, failure: ErrorResponse) -> ModelError {
        // Checked first, because this error quotes part of the call, which may contain any words.
        if errors::is_unparsable_call(&failure) {
            return errors::unparsable_call_error(self.model(), &self.settings, &failure);
        }
        errors::to_model_error(self.model(), failure)
    }

    // If the server can't describe the model, the chat request is sent anyway.
    fn prepare(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        if self.details.get().is_some() {
            return Box::pin(std::future::ready(()));
        }
        Box::pin(async move {
            let deadline = deadline.min(deadline_in(DETAILS_TIMEOUT));
            let details = match api::show_model(&self.core.http, self.model(), deadline).await {
                Ok(details) => details,
                // The chat request will fail too, with an error that says why.
                Err(ModelError::Unreachable { .. } | ModelError::Model { .. }) => return,
                Err(error) => {
                    tracing::debug!(model = %toolgate_core::text::escape(self.model()), %error, "Ollama didn't describe the model");
                    ModelDetails::default()
                }
            };
            // Two chat requests at the same time may both ask for them. The first answer is kept.
            self.window
                .learn(self.details.get_or_init(|| details).context);
        })
    }

    // The server may silently drop the tools if the model's chat template doesn't support them. The
    // user is notified once.
    fn notice_before(&self, request: &ModelRequest<'_>) -> Option<String> {
        let details = self.details.get();
        let lacks_tools =
            details.is_some_and(|details| details.capabilities.is_some() && !details.can("tools"));
        let has_tools = !request.forbid_tools && !request.tools.is_empty();
        if !lacks_tools || !has_tools || self.has_warned_about_tools.swap(true, Ordering::Relaxed) {
            return None;
        }
        let model = toolgate_core::text::escape(self.model());
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
