//! Sentences in front of a model, behind it, or instead of it. What "the model is away" means, for
//! chat, the gateway and voice alike, is decided here and nowhere else.

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
use self::fallback::{Routed, ask, is_absence};
use crate::catalog::{CatalogCache, Dialect};
use crate::error::NOT_FINISHED;
use crate::event::tell_waits;
use crate::{
    AnswerSource, Catalog, Event, Listener, ModelClient, ModelError, Reply, Request, ToolList,
};

/// How long a turn waits for the names of things where a model can answer instead. They go on being
/// read, and are there for one of the next turns.
pub(crate) const PATIENCE: Duration = Duration::from_millis(150);

/// Who answers each question of a conversation. Clones share whether the model is away.
///
/// With [`sentences_first`](Self::sentences_first), what is certain is answered at once and
/// everything else by the model: what is misspelt, what could mean two things, what is free text,
/// and what is about things whose names are not read within 150 ms. Whoever begins a turn ends it,
/// unless a call fails: then the model, which sees the call and its result, answers.
///
/// With [`sentences_last`](Self::sentences_last), what is understood without a model is done and
/// answered while the model is away, and everything else is the model's error. The model is tried
/// again with each sentence that is not understood.
///
/// ```
/// use std::sync::Arc;
/// use toolgate_core::{ToolExecutor, ToolManager, Toolbox};
/// use toolgate_intents::{Pack, SentenceInterpreter};
/// use toolgate_models::{AnswerSource, SentenceRouter};
///
/// let toolbox = Toolbox::new(ToolExecutor::new(Arc::new(ToolManager::new())));
/// let sentences = SentenceInterpreter::new(toolbox, Pack::english())?;
/// let router = SentenceRouter::sentences_only(Arc::new(sentences));
/// assert_eq!((router.source(), router.model_name()), (AnswerSource::Sentences, "en"));
/// # Ok::<_, toolgate_intents::PackError>(())
/// ```
#[derive(Clone)]
pub struct SentenceRouter {
    route: Route,
    /// True if the model could not be reached when it was last asked, and sentences are asked last.
    is_away: Arc<AtomicBool>,
}

#[derive(Clone)]
enum Route {
    SentencesOnly(Arc<SentenceInterpreter>, Arc<CatalogCache>),
    Model(Arc<dyn ModelClient>, Option<RoutedSentences>),
}

#[derive(Clone)]
struct RoutedSentences {
    interpreter: Arc<SentenceInterpreter>,
    is_first: bool,
    is_last: bool,
}

/// Without a model, names and all are taken as they are listed.
const PLAIN: Dialect = Dialect {
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
    /// Only a model: sentences are never asked.
    pub fn new(model: Arc<dyn ModelClient>) -> Self {
        Self::with_route(Route::Model(model, None))
    }

    /// No model at all.
    pub fn sentences_only(sentences: Arc<SentenceInterpreter>) -> Self {
        Self::with_route(Route::SentencesOnly(sentences, Arc::default()))
    }

    fn with_route(route: Route) -> Self {
        let is_away = Arc::default();
        Self { route, is_away }
    }

    /// Sentences that are certain are answered without the model.
    #[must_use]
    pub fn sentences_first(mut self, sentences: Arc<SentenceInterpreter>) -> Self {
        if let Some(routed) = self.routed(sentences) {
            routed.is_first = true;
        }
        self
    }

    /// Sentences are answered without the model while it is away.
    #[must_use]
    pub fn sentences_last(mut self, sentences: Arc<SentenceInterpreter>) -> Self {
        if let Some(routed) = self.routed(sentences) {
            routed.is_last = true;
        }
        self
    }

    fn routed(&mut self, interpreter: Arc<SentenceInterpreter>) -> Option<&mut RoutedSentences> {
        let Route::Model(_, routed) = &mut self.route else {
            return None;
        };
        Some(routed.get_or_insert_with(|| RoutedSentences {
            interpreter,
            is_first: false,
            is_last: false,
        }))
    }

    /// The sentences that are asked first, last or alone.
    pub fn sentences(&self) -> Option<&Arc<SentenceInterpreter>> {
        match &self.route {
            Route::SentencesOnly(sentences, _) => Some(sentences),
            Route::Model(_, routed) => routed.as_ref().map(|routed| &routed.interpreter),
        }
    }

    /// Who answers, apart from sentences that are asked first or last.
    pub fn source(&self) -> AnswerSource {
        self.model()
            .map_or(AnswerSource::Sentences, |model| model.provider().into())
    }

    /// Which model; the language of the sentences where there is none.
    pub fn model_name(&self) -> &str {
        match &self.route {
            Route::SentencesOnly(sentences, _) => sentences.language(),
            Route::Model(model, _) => model.model(),
        }
    }

    fn model(&self) -> Option<&Arc<dyn ModelClient>> {
        match &self.route {
            Route::SentencesOnly(..) => None,
            Route::Model(model, _) => Some(model),
        }
    }

    /// True for clones of one router.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.is_away, &other.is_away)
    }

    /// Somebody else saw that the model is there again.
    pub fn set_available(&self) {
        self.is_away.store(false, Ordering::Relaxed);
    }

    fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    /// True if it is certain, without a model, what is to be done about this sentence at the
    /// beginning of a conversation, and the model would not be asked.
    pub async fn understands(&self, text: &str) -> bool {
        match &self.route {
            Route::SentencesOnly(sentences, _) => is_certain(sentences, text).await,
            Route::Model(_, Some(routed)) if self.is_away() => {
                is_certain(&routed.interpreter, text).await
            }
            Route::Model(_, Some(routed)) if routed.is_first => {
                let looking = is_certain(&routed.interpreter, text);
                tokio::time::timeout(PATIENCE, looking)
                    .await
                    .unwrap_or(false)
            }
            Route::Model(..) => false,
        }
    }

    /// True if all tools should be known before anybody is asked about this sentence, even those
    /// whose servers are still starting: a model has to be told of them. Sentences wait themselves,
    /// for what they need, and what is certain needs no more tools than there are.
    pub(crate) async fn wants_all_tools(&self, text: &str) -> bool {
        match &self.route {
            Route::SentencesOnly(..) => false,
            Route::Model(_, None) => true,
            Route::Model(_, Some(routed)) => {
                !self.is_away() && !is_certain(&routed.interpreter, text).await
            }
        }
    }

    /// Learns what has to be known of the model before tools are chosen; see
    /// [`ModelClient::prepare`].
    pub async fn prepare(&self, deadline: Instant) {
        // One that is away would be waited for in vain.
        if let Some(model) = self.model().filter(|_| !self.is_away()) {
            model.prepare(deadline).await;
        }
    }

    pub(crate) fn window(&self) -> usize {
        // Sentences look at two messages, however many there are.
        self.model().map_or(1 << 20, |model| model.window())
    }

    pub(crate) fn most_tools(&self) -> Option<usize> {
        self.model().and_then(|model| model.most_tools())
    }

    /// The tools in the form of whoever answers. Made once for a list of tools and kept.
    pub fn catalog(&self, tools: &Arc<ToolList>) -> Arc<Catalog> {
        match &self.route {
            Route::SentencesOnly(_, catalogs) => catalogs.get(tools, &PLAIN),
            Route::Model(model, _) => model.catalog(tools),
        }
    }

    pub(crate) fn overdue(&self, after: Duration) -> Result<Reply, ModelError> {
        match &self.route {
            Route::SentencesOnly(sentences, _) => Ok(to_reply(sentences.say_again(), &[])),
            Route::Model(model, _) => Err(ModelError::TimedOut {
                provider: model.provider(),
                what: NOT_FINISHED,
                after,
            }),
        }
    }

    pub(crate) async fn reply(
        &self,
        request: Request<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Reply, ModelError> {
        let turn = PendingTurn::new(&request);
        let (model, routed) = match &self.route {
            Route::SentencesOnly(sentences, _) => {
                let answer = turn.answer(sentences, &mut tell_waits(listener)).await;
                return Ok(tell(answer, &request, listener));
            }
            Route::Model(model, routed) => (model, routed.as_ref()),
        };
        let (was_away, is_last) = (self.is_away(), routed.is_some_and(|routed| routed.is_last));
        if let Some(routed) = routed
            && let Some(answer) = self.before_model(routed, &turn, listener).await
        {
            if was_away && turn.is_beginning() {
                notice(model.as_ref(), listener);
            }
            return Ok(tell(answer, &request, listener));
        }
        let routed = match routed.filter(|_| is_last && !was_away) {
            Some(routed) => {
                let sentences = &routed.interpreter;
                ask(model.as_ref(), sentences, &turn, request, listener).await
            }
            None => model.reply(request, listener).await.map(Routed::Model),
        };
        let away = match &routed {
            Ok(Routed::Sentences(_, error)) => Some(error),
            Err(error) if is_absence(error) => Some(error),
            _ => None,
        };
        let away = away.filter(|_| is_last);
        self.is_away.store(away.is_some(), Ordering::Relaxed);
        if let Some(error) = away {
            listener.event(Event::ModelAway { error });
        }
        match routed? {
            Routed::Model(reply) => Ok(reply),
            Routed::Sentences(answer, _) => {
                if turn.is_beginning() {
                    notice(model.as_ref(), listener);
                }
                Ok(tell(answer, &request, listener))
            }
        }
    }

    /// The answer of sentences, where the model need not be asked or would be asked in vain.
    async fn before_model(
        &self,
        routed: &RoutedSentences,
        turn: &PendingTurn<'_>,
        listener: &mut dyn Listener,
    ) -> Option<Interpretation> {
        let sentences = &routed.interpreter;
        if self.is_away() {
            return turn.instead(sentences, &mut tell_waits(listener)).await;
        }
        if turn.is_well_begun() {
            return Some(turn.answer(sentences, &mut tell_waits(listener)).await);
        }
        if !routed.is_first {
            return None;
        }
        let looking = tokio::time::timeout(PATIENCE, turn.certain(sentences));
        looking.await.unwrap_or_else(|_| {
            tracing::debug!("the names of things are still being read: the model answers");
            None
        })
    }
}

async fn is_certain(sentences: &SentenceInterpreter, text: &str) -> bool {
    let context = SentenceContext::default();
    sentences.certain_calls(text, &context).await.is_some()
}

fn tell(answer: Interpretation, request: &Request<'_>, listener: &mut dyn Listener) -> Reply {
    let reply = to_reply(answer, request.messages);
    let text = reply.message.to_text();
    if !text.is_empty() {
        listener.event(Event::Text(&text));
    }
    reply
}

fn notice(model: &dyn ModelClient, listener: &mut dyn Listener) {
    let provider = model.provider();
    listener.event(Event::Notice(&format!(
        "{provider} can not be reached: what needs no model is answered without one"
    )));
}
