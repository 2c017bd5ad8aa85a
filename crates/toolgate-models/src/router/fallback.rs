//! Asks a model that may be unavailable, with sentences as its fallback.

use std::future::poll_fn;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use toolgate_intents::{Interpretation, SentenceInterpreter};

use super::answers::PendingTurn;
use crate::{ModelClient, ModelError, ModelEvent, ModelListener, ModelReply, ModelRequest};

pub(super) enum RoutedAnswer {
    Model(ModelReply),
    // The model is unavailable for this reason, and sentences have an answer.
    Sentences(Interpretation, ModelError),
}

/// True if the model could not be reached or did not answer, rather than answered with an error.
pub(super) fn means_unavailable(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::Unreachable { .. } | ModelError::TimedOut { .. }
    )
}

/// The model's reply, or the sentences' answer as soon as the model turns out to be unavailable.
/// Waits for the model's further attempts only if sentences have no answer. Once some of the
/// model's text was spoken or shown, sentences no longer step in.
pub(super) async fn ask_with_fallback(
    model: &dyn ModelClient,
    sentences: &SentenceInterpreter,
    turn: &PendingTurn<'_>,
    request: ModelRequest<'_>,
    listener: &mut dyn ModelListener,
) -> Result<RoutedAnswer, ModelError> {
    let (unreachable, has_spoken) = (OnceLock::new(), AtomicBool::new(false));
    let mut observer = |event: ModelEvent<'_>| {
        match &event {
            ModelEvent::Text(_) | ModelEvent::Thinking(_) => {
                has_spoken.store(true, Ordering::Relaxed);
            }
            ModelEvent::Retrying {
                error: error @ ModelError::Unreachable { .. },
                ..
            } if !has_spoken.load(Ordering::Relaxed) => drop(unreachable.set((*error).clone())),
            _ => {}
        }
        listener.event(event);
    };
    let mut reply = model.reply(request, &mut observer);
    let first = poll_fn(|context| match reply.as_mut().poll(context) {
        Poll::Ready(reply) => Poll::Ready(Some(reply)),
        Poll::Pending if unreachable.get().is_some() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let failed = match first.await {
        None => None,
        Some(Err(error)) if means_unavailable(&error) && !has_spoken.load(Ordering::Relaxed) => {
            Some(error)
        }
        Some(reply) => return reply.map(RoutedAnswer::Model),
    };
    let answer = turn.answer_without_model(sentences, &mut |_| {}).await;
    match (
        answer,
        failed.clone().or_else(|| unreachable.get().cloned()),
    ) {
        (Some(answer), Some(error)) => Ok(RoutedAnswer::Sentences(answer, error)),
        _ => match failed {
            Some(error) => Err(error),
            None => reply.await.map(RoutedAnswer::Model),
        },
    }
}
