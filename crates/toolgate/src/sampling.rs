//! Answers the sampling requests of servers with the configured model.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use toolgate_core::Redactor;
use toolgate_mcp::{SamplingAnswer, SamplingHandler, SamplingRequest};
use toolgate_models::{
    AssistantMessage, CompletionRequest, Message, ModelClient, ModelSettings, StopReason,
};

use crate::config::Config;
use crate::wiring;

// Less than what a server's request may take altogether, so that the provider's error is reported.
const TIMEOUT: Duration = Duration::from_secs(110);

/// Connects to the model when a server asks for the first time.
pub(crate) struct ModelSamplingHandler {
    settings: ModelSettings,
    redactor: Redactor,
    client: OnceCell<Arc<dyn ModelClient>>,
}

impl ModelSamplingHandler {
    /// `None` if no server may use the model.
    pub(crate) fn new(config: &Config, redactor: &Redactor) -> Option<Self> {
        let mut servers = config.servers.iter();
        let is_allowed = servers.any(|server| server.settings.sampling.is_some());
        is_allowed.then(|| Self {
            settings: config.model.clone(),
            redactor: redactor.clone(),
            client: OnceCell::new(),
        })
    }

    async fn client(&self) -> Result<&Arc<dyn ModelClient>, String> {
        let connect = || async {
            let (settings, redactor) = (self.settings.clone(), self.redactor.clone());
            // Building a client reads files, and choosing one may not move between threads.
            let connecting = tokio::task::spawn_blocking(move || {
                Handle::current().block_on(connect(&settings, &redactor))
            });
            let failed = |_| Err("no model could be chosen".to_owned());
            connecting.await.unwrap_or_else(failed)
        };
        self.client.get_or_try_init(connect).await
    }
}

async fn connect(
    settings: &ModelSettings,
    redactor: &Redactor,
) -> Result<Arc<dyn ModelClient>, String> {
    let why = "the configuration says so";
    let choice = toolgate_models::select_model(settings, why, &wiring::environment).await;
    let choice = choice.map_err(|error| error.to_string())?;
    redactor.add_secrets(choice.settings.secrets());
    toolgate_models::connect_client(&choice).map_err(|error| error.to_string())
}

impl SamplingHandler for ModelSamplingHandler {
    fn sample<'a>(
        &'a self,
        request: &'a SamplingRequest,
    ) -> BoxFuture<'a, Result<SamplingAnswer, String>> {
        Box::pin(async move {
            let client = self
                .client()
                .await
                .map_err(|error| self.redactor.line(&error, 500))?;
            let messages = to_messages(request);
            let reply = to_completion(request, &messages).ask(&**client).await;
            let reply = reply.map_err(|error| self.redactor.line(&error.to_string(), 500))?;
            match reply.stop {
                StopReason::Refusal => Err("the model declined to answer".to_owned()),
                stop => Ok(SamplingAnswer {
                    text: reply.message.to_text(),
                    model: client.model().to_owned(),
                    is_cut: stop == StopReason::Length,
                    input_tokens: reply.usage.input,
                    output_tokens: reply.usage.output,
                }),
            }
        })
    }

    fn input_tokens(&self, request: &SamplingRequest) -> u64 {
        let messages = to_messages(request);
        to_completion(request, &messages).input_tokens() as u64
    }
}

fn to_completion<'a>(
    request: &'a SamplingRequest,
    messages: &'a [Message],
) -> CompletionRequest<'a> {
    CompletionRequest {
        system: &request.system,
        messages,
        max_tokens: usize::try_from(request.max_tokens).unwrap_or(usize::MAX),
        temperature: request.temperature,
        timeout: TIMEOUT,
    }
}

fn to_messages(request: &SamplingRequest) -> Vec<Message> {
    let messages = request.messages.iter();
    let messages = messages.map(|message| match message.is_assistant {
        true => Message::Assistant(AssistantMessage::text(message.text.clone())),
        false => Message::User {
            text: message.text.clone(),
        },
    });
    messages.collect()
}
