//! Decides whether sentences or the model answer a question. Chat, the gateway and voice all use
//! this module to decide when a model counts as unavailable.

mod answers;
mod fallback;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;
use toolgate_core::ToolDefinition;
use toolgate_intents::{Interpretation, SentenceContext, SentenceInterpreter};

use self::answers::{PendingTurn, to_reply};
use self::fallback::{RoutedAnswer, ask_with_fallback, means_unavailable};
use crate::catalog::{CatalogCache, ToolDialect};
use crate::error::FINISH;
use crate::event::forward_waits;
use crate::{
    AnswerSource, Catalog, ModelClient, ModelError, ModelEvent, ModelListener, ModelReply,
    ModelRequest, ToolList,
};

// How long a turn waits for sentences, which may have to fetch the names of devices, if the model
// can answer instead. Fetching continues, so one of the next turns has the names.
pub(crate) const SENTENCES_TIMEOUT: Duration = Duration::from_millis(150);

/// Decides who answers each question of a conversation. Clones share whether
/// the model is unavailable.
///
/// With [`sentences_first`](Self::sentences_first), sentences answer what they understand for
/// certain. The model answers everything else: what is misspelled, ambiguous or free text, and
/// what needs the names of devices if these can't be fetched within 150 ms. A turn that
/// sentences begin is also completed by them, unless a call fails: then the model, which sees
/// the call and its result, answers.
///
/// With [`sentences_last`](Self::sentences_last), sentences answer while the model is unavailable.
/// A question that they don't understand is sent to the model again, and ends in its error if the
/// model is still unavailable.
#[derive(Clone)]
pub struct SentenceRouter {
    route: AnswerRoute,
    // The model could not be reached when it was last asked. Set only with `sentences_last`.
    is_unavailable: Arc<AtomicBool>,
}

#[derive(Clone)]
enum AnswerRoute {
    SentencesOnly(Arc<SentenceInterpreter>, Arc<CatalogCache>),
    Model(Arc<dyn ModelClient>, Option<RoutedSentences>),
}

#[derive(Clone)]
struct RoutedSentences {
    interpreter: Arc<SentenceInterpreter>,
    is_first: bool,
    is_last: bool,
}

// For sentences, which use only the names of tools.
const PLAIN: ToolDialect = ToolDialect {
    longest_name: usize::MAX,
    original_names: false,
    convert: |_: &ToolDefinition, name: &str| -> Result<Box<RawValue>, String> {
        let tool = json!({ "name": name });
        serde_json::value::to_raw_value(&tool).map_err(|error| error.to_string())
    },
};

impl<C: ModelClient + 'static> From<Arc<C>> for SentenceRouter {
    fn from(model: Arc<C>) -> Self {
        Self::new(model)
    }
}

impl From<Arc<dyn ModelClient>> for SentenceRouter {
    fn from(model: Arc<dyn ModelClient>) -> Self {
        Self::new(model)
    }
}

impl SentenceRouter {
    pub fn new(model: Arc<dyn ModelClient>) -> Self {
        Self::with_route(AnswerRoute::Model(model, None))
    }

    pub fn sentences_only(sentences: Arc<SentenceInterpreter>) -> Self {
        Self::with_route(AnswerRoute::SentencesOnly(sentences, Arc::default()))
    }

    fn with_route(route: AnswerRoute) -> Self {
        let is_unavailable = Arc::default();
        Self {
            route,
            is_unavailable,
        }
    }

    /// Lets sentences answer before the model is asked. No effect without a model.
    #[must_use]
    pub fn sentences_first(mut self, sentences: Arc<SentenceInterpreter>) -> Self {
        if let Some(routed) = self.sentences_mut(sentences) {
            routed.is_first = true;
        }
        self
    }

    /// Lets sentences answer while the model is unavailable. No effect without a model.
    #[must_use]
    pub fn sentences_last(mut self, sentences: Arc<SentenceInterpreter>) -> Self {
        if let Some(routed) = self.sentences_mut(sentences) {
            routed.is_last = true;
        }
        self
    }

    fn sentences_mut(
        &mut self,
        interpreter: Arc<SentenceInterpreter>,
    ) -> Option<&mut RoutedSentences> {
        let AnswerRoute::Model(_, routed) = &mut self.route else {
            return None;
        };
        Some(routed.get_or_insert_with(|| RoutedSentences {
            interpreter,
            is_first: false,
            is_last: false,
        }))
    }

    /// The sentences in use, whether asked first, last or alone.
    pub fn sentences(&self) -> Option<&Arc<SentenceInterpreter>> {
        match &self.route {
            AnswerRoute::SentencesOnly(sentences, _) => Some(sentences),
            AnswerRoute::Model(_, routed) => routed.as_ref().map(|routed| &routed.interpreter),
        }
    }

    /// The model's provider, or sentences without a model.
    pub fn source(&self) -> AnswerSource {
        self.model()
            .map_or(AnswerSource::Sentences, |model| model.provider().into())
    }

    /// The model's name, or the language of the sentences if there is no model.
    pub fn model_name(&self) -> &str {
        match &self.route {
            AnswerRoute::SentencesOnly(sentences, _) => sentences.language(),
            AnswerRoute::Model(model, _) => model.model(),
        }
    }

    fn model(&self) -> Option<&Arc<dyn ModelClient>> {
        match &self.route {
            AnswerRoute::SentencesOnly(..) => None,
            AnswerRoute::Model(model, _) => Some(model),
        }
    }

    /// True if one of the two is a clone of the other.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.is_unavailable, &other.is_unavailable)
    }

    /// Marks the model as available again, for callers that found out in another way.
    pub fn set_available(&self) {
        self.is_unavailable.store(false, Ordering::Relaxed);
    }

    fn is_unavailable(&self) -> bool {
        self.is_unavailable.load(Ordering::Relaxed)
    }

    /// True if sentences would answer this at the beginning of a conversation,
    /// without asking the model.
    pub async fn understands(&self, text: &str) -> bool {
        match &self.route {
            AnswerRoute::SentencesOnly(sentences, _) => is_certain(sentences, text).await,
            AnswerRoute::Model(_, Some(routed)) if self.is_unavailable() => {
                is_certain(&routed.interpreter, text).await
            }
            AnswerRoute::Model(_, Some(routed)) if routed.is_first => {
                let looking = is_certain(&routed.interpreter, text);
                tokio::time::timeout(SENTENCES_TIMEOUT, looking)
                    .await
                    .unwrap_or(false)
            }
            AnswerRoute::Model(..) => false,
        }
    }

    /// True if the turn should wait for servers that are still starting, because the model will be
    /// asked and needs the whole list of tools. Sentences wait for the tools they need themselves.
    pub(crate) async fn needs_all_tools(&self, text: &str) -> bool {
        match &self.route {
            AnswerRoute::SentencesOnly(..) => false,
            AnswerRoute::Model(_, None) => true,
            AnswerRoute::Model(_, Some(routed)) => {
                !self.is_unavailable() && !is_certain(&routed.interpreter, text).await
            }
        }
    }

    /// See [`ModelClient::prepare`]. Does nothing while the model is unavailable.
    pub async fn prepare(&self, deadline: Instant) {
        if let Some(model) = self.model().filter(|_| !self.is_unavailable()) {
            model.prepare(deadline).await;
        }
    }

    pub(crate) fn window(&self) -> usize {
        // As good as unlimited: sentences look at only two messages, however many there are.
        self.model().map_or(1 << 20, |model| model.window())
    }

    pub(crate) fn tool_limit(&self) -> Option<usize> {
        self.model().and_then(|model| model.tool_limit())
    }

    /// The tools in the form that the model or sentences need, converted once per tool list.
    pub fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        match &self.route {
            AnswerRoute::SentencesOnly(_, catalogs) => catalogs.get(tools, &PLAIN),
            AnswerRoute::Model(model, _) => model.catalog(tools),
        }
    }

    pub(crate) fn timeout_reply(&self, after: Duration) -> Result<ModelReply, ModelError> {
        match &self.route {
            AnswerRoute::SentencesOnly(sentences, _) => {
                Ok(to_reply(sentences.ask_to_repeat(), &[]))
            }
            AnswerRoute::Model(model, _) => Err(ModelError::TimedOut {
                provider: model.provider(),
                what: FINISH,
                after,
            }),
        }
    }

    pub(crate) async fn reply(
        &self,
        request: ModelRequest<'_>,
        listener: &mut dyn ModelListener,
    ) -> Result<ModelReply, ModelError> {
        let turn = PendingTurn::new(&request);
        let (model, routed) = match &self.route {
            AnswerRoute::SentencesOnly(sentences, _) => {
                let answer = turn.answer(sentences, &mut forward_waits(listener)).await;
                return Ok(send_answer(answer, &request, listener));
            }
            AnswerRoute::Model(model, routed) => (model, routed.as_ref()),
        };
        let (was_unavailable, is_last) = (
            self.is_unavailable(),
            routed.is_some_and(|routed| routed.is_last),
        );
        if let Some(routed) = routed
            && let Some(answer) = self.before_model(routed, &turn, listener).await
        {
            if was_unavailable && turn.is_beginning() {
                notify_unreachable(model.as_ref(), listener);
            }
            return Ok(send_answer(answer, &request, listener));
        }
        let answer = match routed.filter(|_| is_last && !was_unavailable) {
            Some(routed) => {
                let sentences = &routed.interpreter;
                ask_with_fallback(model.as_ref(), sentences, &turn, request, listener).await
            }
            None => model
                .reply(request, listener)
                .await
                .map(RoutedAnswer::Model),
        };
        let unavailable = match &answer {
            Ok(RoutedAnswer::Sentences(_, error)) => Some(error),
            Err(error) if means_unavailable(error) => Some(error),
            _ => None,
        };
        let unavailable = unavailable.filter(|_| is_last);
        self.is_unavailable
            .store(unavailable.is_some(), Ordering::Relaxed);
        if let Some(error) = unavailable {
            listener.event(ModelEvent::ModelUnavailable { error });
        }
        match answer? {
            RoutedAnswer::Model(reply) => Ok(reply),
            RoutedAnswer::Sentences(answer, _) => {
                if turn.is_beginning() {
                    notify_unreachable(model.as_ref(), listener);
                }
                Ok(send_answer(answer, &request, listener))
            }
        }
    }

    // The sentences' answer, if the model is unavailable or needn't be asked.
    async fn before_model(
        &self,
        routed: &RoutedSentences,
        turn: &PendingTurn<'_>,
        listener: &mut dyn ModelListener,
    ) -> Option<Interpretation> {
        let sentences = &routed.interpreter;
        if self.is_unavailable() {
            return turn
                .answer_without_model(sentences, &mut forward_waits(listener))
                .await;
        }
        if turn.has_called_successfully() {
            return Some(turn.answer(sentences, &mut forward_waits(listener)).await);
        }
        if !routed.is_first {
            return None;
        }
        let looking = tokio::time::timeout(SENTENCES_TIMEOUT, turn.find_certain_answer(sentences));
        looking.await.unwrap_or_else(|_| {
            tracing::debug!("the model answers, because device names are still being fetched");
            None
        })
    }
}

async fn is_certain(sentences: &SentenceInterpreter, text: &str) -> bool {
    let context = SentenceContext::default();
    sentences.certain_calls(text, &context).await.is_some()
}

fn send_answer(
    answer: Interpretation,
    request: &ModelRequest<'_>,
    listener: &mut dyn ModelListener,
) -> ModelReply {
    let reply = to_reply(answer, request.messages);
    let text = reply.message.to_text();
    if !text.is_empty() {
        listener.event(ModelEvent::Text(&text));
    }
    reply
}

fn notify_unreachable(model: &dyn ModelClient, listener: &mut dyn ModelListener) {
    let provider = model.provider();
    listener.event(ModelEvent::Notice(&format!(
        "{provider} can't be reached; requests that need no model are still answered"
    )));
}
