//! Asks a model once: no tools, no sentences, no conversation that goes on.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::conversation::message_tokens;
use crate::{
    AnswerSource, Message, ModelClient, ModelError, ModelEvent, ModelReply, ModelRequest,
    ModelSelection, ModelSelectionError, OfferedTools, ToolList, tokens,
};

/// A single request to a model, without tools or conversation.
#[derive(Debug, Clone, Copy)]
pub struct CompletionRequest<'a> {
    /// Empty: none.
    pub system: &'a str,
    pub messages: &'a [Message],
    /// The longest answer in tokens. The limit of the settings applies as well.
    pub max_tokens: usize,
    /// `None`: that of the settings.
    pub temperature: Option<f64>,
    /// How long it may take, retries included.
    pub timeout: Duration,
}

impl CompletionRequest<'_> {
    /// Estimates the tokens that the model has to read, rather too high than too low.
    pub fn input_tokens(&self) -> usize {
        let messages = self.messages.iter().map(message_tokens);
        tokens::estimate(self.system) + messages.sum::<usize>()
    }

    /// # Errors
    ///
    /// If the model can't be reached, refuses or takes too long.
    pub async fn ask(&self, client: &dyn ModelClient) -> Result<ModelReply, ModelError> {
        let deadline = Instant::now() + self.timeout;
        client.prepare(deadline).await;
        let none = Arc::new(ToolList::new(Vec::new()));
        let tools = OfferedTools::all(client.catalog(&none));
        let request = ModelRequest {
            forbid_tools: true,
            max_tokens: Some(self.max_tokens),
            temperature: self.temperature,
            ..ModelRequest::new(self.system, self.messages, &tools, deadline)
        };
        client.reply(request, &mut |_: ModelEvent<'_>| {}).await
    }
}

/// Builds the client of a selected model. Sends no request yet.
///
/// # Errors
///
/// If the selection is sentences, which are no model, or the client can't be built.
pub fn connect_client(
    selection: &ModelSelection,
) -> Result<Arc<dyn ModelClient>, ModelSelectionError> {
    match selection.provider {
        AnswerSource::Model(provider) => Ok((provider.entry().connect)(&selection.settings)?),
        AnswerSource::Sentences => {
            let text = "no model is available; set one in the section 'model'";
            Err(ModelSelectionError::Settings(text.to_owned()))
        }
    }
}
