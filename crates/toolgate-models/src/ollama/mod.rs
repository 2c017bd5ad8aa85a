//! Models on the own machine, by Ollama's `/api/chat`.
//!
//! That tools seem invisible to a model has many causes here, and each has its place: a prompt that the server cuts
//! (`window`), thinking mixed with words (`think`), calls on any line (`stream`) or written as text (`rescue`), a model that
//! can not use tools at all (`errors`). [`diagnose`] tells what can be told without a question; the rest is told by the turn in
//! which it is met.

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

use self::api::{Api, Shown, within};
pub use self::api::{ModelInfo, ToolUse};
pub(crate) use self::api::{URL, headers, is_same};
pub use self::diagnose::{Finding, diagnose};
use self::request::Wanted;
use self::stream::Stream;
pub use self::tools::to_qwen;
use self::tools::{QWEN, log_converted};
use self::window::{Read, Window};
use crate::catalog::Dialect;
use crate::http::Failure;
use crate::learned::{Habits, Learned};
use crate::provider_client::ProviderClient;
use crate::wire_format::{Endpoint, Framing, ToolForm, WireFormat};
use crate::{Catalog, ModelError, ModelSettings, Provider, Reply, Request};

/// How long the server may take to tell of a model; without it the question is asked all the same.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks a model that Ollama runs.
///
/// ```no_run
/// use std::sync::Arc;
/// use toolgate_core::{ToolExecutor, ToolManager};
/// use toolgate_models::{Conversation, Event, ModelSettings, OllamaClient, Toolbox};
///
/// # async fn example() -> Result<(), toolgate_models::ModelError> {
/// let settings = ModelSettings::default();
/// let client = Arc::new(OllamaClient::new(&settings)?);
/// let toolbox = Toolbox::new(ToolExecutor::new(Arc::new(ToolManager::new())));
/// let mut conversation = Conversation::new(client, toolbox, settings);
///
/// let mut listener = |event: Event<'_>| if let Event::Text(words) = event { print!("{words}") };
/// conversation.turn("What time is it?", &mut listener).await?;
/// # Ok(())
/// # }
/// ```
pub type OllamaClient = ProviderClient<OllamaFormat>;

/// Ollama's `/api/chat`.
pub struct OllamaFormat {
    api: Api,
    model: String,
    settings: ModelSettings,
    habits: Learned<ThinkHabit>,
    window: Window,
    shown: OnceLock<Shown>,
    /// It was told that the model may not know what tools are.
    told_of_tools: AtomicBool,
}

/// Whether the model is told whether to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThinkHabit {
    is_sent: bool,
}

impl Habits for ThinkHabit {
    fn after(self, _status: u16, message: &str) -> Self {
        let is_refused = message.to_lowercase().contains(errors::NO_THINKING);
        Self {
            is_sent: self.is_sent && !is_refused,
        }
    }

    fn notices(self, _before: Self, model: &str, _error: &ModelError) -> Vec<String> {
        vec![format!(
            "the model '{model}' can not think before it answers; it is asked without"
        )]
    }
}

impl OllamaClient {
    /// For a model at an address; nothing is asked yet. An empty name means the usual model, an empty address this machine.
    pub fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        let format = OllamaFormat {
            api: Api::new(settings)?,
            model: model_of(settings).to_owned(),
            settings: settings.clone(),
            habits: Learned::new(ThinkHabit {
                is_sent: settings.think.is_some(),
            }),
            window: Window::new(settings.context_tokens),
            shown: OnceLock::new(),
            told_of_tools: AtomicBool::new(false),
        };
        Ok(Self::with_format(format, settings))
    }

    /// All models that the server at an address has, with what they can do, asked for within `limit` altogether. An empty
    /// address means this machine.
    pub async fn probe(
        settings: &ModelSettings,
        limit: Duration,
    ) -> Result<Vec<ModelInfo>, ModelError> {
        let (api, deadline) = (Api::new(settings)?, within(limit));
        let models = api.models(deadline).await?;
        Ok(api.infos(models, deadline).await)
    }
}

impl OllamaFormat {
    /// Compares what the server says it read with what was sent; a sentence for the person where it was cut.
    async fn check_window(&self, request: &Request<'_>, reply: &Reply) -> Option<String> {
        let estimate = request::tokens(request);
        let read = Read {
            estimate,
            // It never shrinks: the one that was asked for, unless another question needed more since.
            window: self.window.fit(estimate, self.settings.max_tokens),
            read: reply.usage.input,
        };
        let held = match self.window.is_doubtful(read) {
            true => self.held(request.deadline).await,
            false => None,
        };
        self.window.check(read, held)
    }

    /// The window that the server holds the model with now, where it tells.
    async fn held(&self, deadline: Instant) -> Option<usize> {
        let deadline = deadline.min(within(PATIENCE));
        let loaded = self.api.loaded(&self.model, deadline).await;
        let held = loaded.ok().flatten().and_then(|it| it.context_length);
        if held.is_none() {
            self.window.not_told();
        }
        held
    }
}

impl WireFormat for OllamaFormat {
    const PROVIDER: Provider = Provider::Ollama;
    const DIALECT: &'static Dialect = &QWEN;
    const FORM: ToolForm = crate::openai::form;
    const FRAMING: Framing = Framing::Lines;
    const CUT: &'static str = "the stream ended before the model was done";

    type Habits = ThinkHabit;
    type Reader<'a> = Stream<'a>;

    fn endpoint(&self) -> &Endpoint {
        &self.api.endpoint
    }

    fn path(&self) -> &str {
        "/api/chat"
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn window(&self) -> usize {
        self.window.most()
    }

    fn log_catalog(catalog: &Catalog) {
        log_converted(catalog);
    }

    fn habits(&self) -> &Learned<ThinkHabit> {
        &self.habits
    }

    fn rescues(&self) -> bool {
        self.settings.rescue
    }

    fn body(&self, request: &Request<'_>, habit: ThinkHabit) -> Result<Vec<u8>, String> {
        let wanted = Wanted {
            window: self
                .window
                .fit(request::tokens(request), self.settings.max_tokens),
            think: self.settings.think.filter(|_| habit.is_sent),
            pictures: self.shown.get().is_some_and(|shown| shown.can("vision")),
        };
        request::body(request, &self.model, &self.settings, wanted)
            .map_err(|error| format!("the question can not be written as JSON ({error})"))
    }

    fn reader<'a>(&self, request: &Request<'a>) -> Stream<'a> {
        Stream::new(request.tools)
    }

    fn status(error: &Value) -> u16 {
        let mut keys = ["status", "status_code"].iter();
        let status = keys.find_map(|key| error.get(key)?.as_u64());
        status
            .and_then(|status| u16::try_from(status).ok())
            .unwrap_or(500)
    }

    fn explain(&self, failure: Failure) -> ModelError {
        // First: the call is told in part, and may hold any words.
        if errors::is_unread_call(&failure) {
            return errors::unread_call(&self.model, &self.settings, &failure);
        }
        errors::explain(&self.model, failure)
    }

    /// Asks the server what the model is, unless it told already. One that can not tell is asked the question all the same.
    fn prepare(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        if self.shown.get().is_some() {
            return Box::pin(std::future::ready(()));
        }
        Box::pin(async move {
            let deadline = deadline.min(within(PATIENCE));
            let shown = match self.api.show(&self.model, deadline).await {
                Ok(shown) => shown,
                // Then it knows nothing of the question either, and says why.
                Err(ModelError::Unreachable { .. } | ModelError::Model { .. }) => return,
                Err(error) => {
                    tracing::debug!(model = %toolgate_core::escape(&self.model), %error, "Ollama tells nothing of the model");
                    Shown::default()
                }
            };
            // Two questions at once may both have asked; the first answer stays.
            self.window.learn(self.shown.get_or_init(|| shown).context);
        })
    }

    /// A server may leave tools out without a word where the model has no place for them; that is said once.
    fn caution(&self, request: &Request<'_>) -> Option<String> {
        let shown = self.shown.get();
        let can_not = shown.is_some_and(|it| it.capabilities.is_some() && !it.can("tools"));
        let has_tools = !request.words_only && !request.tools.is_empty();
        if !can_not || !has_tools || self.told_of_tools.swap(true, Ordering::Relaxed) {
            return None;
        }
        let model = toolgate_core::escape(&self.model);
        Some(format!(
            "the model '{model}' can not use tools, as Ollama says: it may never see them ('toolgate doctor' tells what helps)"
        ))
    }

    fn review<'a>(
        &'a self,
        request: &'a Request<'_>,
        reply: &'a Reply,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.check_window(request, reply))
    }
}

fn model_of(settings: &ModelSettings) -> &str {
    match settings.name.trim() {
        "" => Provider::Ollama.default_model(),
        name => name,
    }
}

#[cfg(test)]
mod tests;
