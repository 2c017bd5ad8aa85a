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
#[cfg(test)]
mod samples;
mod stream;
mod tools;
mod window;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

use self::api::{Api, Shown, within};
pub use self::api::{ModelInfo, ToolUse};
pub use self::diagnose::{Finding, diagnose};
use self::request::{Prompt, Wanted};
use self::stream::{Answer, Stream, Trouble};
pub use self::tools::to_qwen;
use self::tools::{QWEN, QWEN_ORIGINAL, log_converted};
use self::window::{Read, Window};
use crate::catalog::CatalogCache;
use crate::http::Failure;
use crate::retry::{Retries, retrying};
use crate::{
    Catalog, Event, Listener, ModelClient, ModelError, ModelSettings, Provider, Reply, Request,
    SchemaForm, ToolList,
};

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
pub struct OllamaClient {
    api: Api,
    model: String,
    settings: ModelSettings,
    retries: Retries,
    catalogs: CatalogCache,
    /// The catalog that was logged last.
    converted: Mutex<Weak<Catalog>>,
    window: Window,
    /// What the server tells of the model, once it was asked.
    shown: OnceLock<Shown>,
    /// The model refused to be told whether to think.
    no_thinking: AtomicBool,
    /// It was told that the model may not know what tools are.
    told_of_tools: AtomicBool,
}

impl OllamaClient {
    /// For a model at an address; nothing is asked yet. An empty name means the usual model, an empty address this machine.
    pub fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        Ok(Self {
            api: Api::new(settings)?,
            model: model_of(settings).to_owned(),
            settings: settings.clone(),
            retries: Retries::new(settings.attempts),
            catalogs: CatalogCache::default(),
            converted: Mutex::default(),
            window: Window::new(settings.context_tokens),
            shown: OnceLock::new(),
            no_thinking: AtomicBool::new(false),
            told_of_tools: AtomicBool::new(false),
        })
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

    /// Asks the server what the model is, unless it told already. One that can not tell is asked the question all the same.
    async fn get_to_know(&self, deadline: Instant) {
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
    }

    /// One attempt; two where the model does not want to be told whether to think.
    async fn ask(
        &self,
        request: Request<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Reply, ModelError> {
        self.tell_of_tools(&request, listener);
        let think = self
            .settings
            .think
            .filter(|_| !self.no_thinking.load(Ordering::Relaxed));
        let reply = self.ask_thinking(&request, think, listener).await;
        if think.is_none() || reply.is_ok() || !self.no_thinking.load(Ordering::Relaxed) {
            return reply;
        }
        let model = toolgate_core::escape(&self.model);
        listener.event(Event::Notice(&format!(
            "the model '{model}' can not think before it answers; it is asked without"
        )));
        self.ask_thinking(&request, None, listener).await
    }

    /// A server may leave tools out without a word where the model has no place for them; that is said once.
    fn tell_of_tools(&self, request: &Request<'_>, listener: &mut dyn Listener) {
        let shown = self.shown.get();
        let can_not = shown.is_some_and(|it| it.capabilities.is_some() && !it.can("tools"));
        let has_tools = !request.words_only && !request.tools.is_empty();
        if can_not && has_tools && !self.told_of_tools.swap(true, Ordering::Relaxed) {
            let model = toolgate_core::escape(&self.model);
            listener.event(Event::Notice(&format!(
                "the model '{model}' can not use tools, as Ollama says: it may never see them ('toolgate doctor' tells what helps)"
            )));
        }
    }

    async fn ask_thinking(
        &self,
        request: &Request<'_>,
        think: Option<bool>,
        listener: &mut dyn Listener,
    ) -> Result<Reply, ModelError> {
        let pictures = self.shown.get().is_some_and(|shown| shown.can("vision"));
        let prompt = Prompt::new(request, pictures);
        let window = self.window.fit(prompt.tokens, self.settings.max_tokens);
        let wanted = Wanted { window, think };
        let body = prompt.body(&self.model, &self.settings, wanted);
        let body = body.map_err(|error| ModelError::Refused {
            provider: Provider::Ollama,
            reason: format!("the question can not be written as JSON ({error})"),
        })?;
        let estimate = prompt.tokens;
        drop(prompt);
        let (answer, first_token) = self.answer(request, body, listener).await?;
        let read = Read {
            estimate,
            window,
            read: answer.usage.input,
        };
        let held = match self.window.is_doubtful(read) {
            true => self.held(request.deadline).await,
            false => None,
        };
        if let Some(notice) = self.window.check(read, held) {
            listener.event(Event::Notice(&notice));
        }
        Ok(Reply {
            message: answer.said.message(),
            stop: answer.stop,
            usage: answer.usage,
            first_token,
        })
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

    async fn answer(
        &self,
        request: &Request<'_>,
        body: Vec<u8>,
        listener: &mut dyn Listener,
    ) -> Result<(Answer, Option<Instant>), ModelError> {
        let explain = |failure| self.explain(failure);
        let lines = self.api.http.post(
            "/api/chat",
            self.api.headers(),
            body,
            request.deadline,
            explain,
        );
        let mut lines = lines.await?;
        let rescue = self.settings.rescue && !request.words_only;
        let mut stream = Stream::new(request.tools, rescue);
        let mut first_token = None;
        while let Some(line) = lines.next().await? {
            let read = stream.line(&line, listener);
            read.map_err(|trouble| self.error(trouble))?;
            if first_token.is_none() && stream.has_begun() {
                first_token = Some(Instant::now());
            }
            if stream.is_done() {
                lines.finish();
                break;
            }
        }
        let answer = stream.finish(listener);
        Ok((answer.map_err(|trouble| self.error(trouble))?, first_token))
    }

    fn explain(&self, failure: Failure) -> ModelError {
        // First: the call is told in part, and may hold any words.
        if errors::is_unread_call(&failure) {
            return errors::unread_call(&self.model, &self.settings, &failure);
        }
        if errors::is_no_thinking(&failure) {
            self.no_thinking.store(true, Ordering::Relaxed);
        }
        errors::explain(&self.model, failure)
    }

    fn error(&self, trouble: Trouble) -> ModelError {
        let provider = Provider::Ollama;
        match trouble {
            Trouble::Said(value) => {
                let status = ["status", "status_code"]
                    .iter()
                    .find_map(|key| value.get(key)?.as_u64());
                let status = status.and_then(|status| u16::try_from(status).ok());
                self.explain(Failure::in_stream(
                    &self.api.http,
                    status.unwrap_or(500),
                    &value,
                ))
            }
            Trouble::Garbled(reason) => ModelError::Garbled {
                provider,
                reason: self.api.http.line(&reason),
            },
            Trouble::Cut => ModelError::Cut {
                provider,
                reason: "the stream ended before the model was done".to_owned(),
            },
        }
    }
}

impl ModelClient for OllamaClient {
    fn provider(&self) -> Provider {
        Provider::Ollama
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn prepare(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        if self.shown.get().is_some() {
            return Box::pin(std::future::ready(()));
        }
        Box::pin(self.get_to_know(deadline))
    }

    fn window(&self) -> usize {
        self.window.most()
    }

    fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        let dialect = match self.settings.schemas {
            SchemaForm::Lowered => &QWEN,
            SchemaForm::Original => &QWEN_ORIGINAL,
        };
        let catalog = self.catalogs.get(tools, dialect);
        let mut converted = self
            .converted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !std::ptr::eq(Weak::as_ptr(&converted), Arc::as_ptr(&catalog)) {
            log_converted(&catalog);
            *converted = Arc::downgrade(&catalog);
        }
        catalog
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        listener: &'a mut dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            self.prepare(request.deadline).await;
            retrying(&self.retries, request.deadline, listener, move |told| {
                Box::pin(self.ask(request, told))
            })
            .await
        })
    }
}

/// The model that settings mean.
fn model_of(settings: &ModelSettings) -> &str {
    match settings.name.trim() {
        "" => Provider::Ollama.default_model(),
        name => name,
    }
}

#[cfg(test)]
mod tests;
