//! A question to a model that may be away.

use std::future::poll_fn;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use toolgate_intents::{Interpretation, SentenceInterpreter};

use super::answers::PendingTurn;
use crate::{Event, Listener, ModelClient, ModelError, Reply, Request};

pub(super) enum Routed {
    Model(Reply),
    /// The model is away, for this reason, and sentences have an answer.
    Sentences(Interpretation, ModelError),
}

/// True if the model was not there, rather than there and of no use.
pub(super) fn is_absence(error: &ModelError) -> bool {
    matches!(
        error,
        ModelError::Unreachable { .. } | ModelError::TimedOut { .. }
    )
}

/// The model's reply, or the answer of sentences as soon as the model is found to be away: its
/// further attempts are waited for only where sentences have no answer. Words of the model that
/// were told cannot be taken back from somebody who heard them, so it goes on alone then.
pub(super) async fn ask(
    model: &dyn ModelClient,
    sentences: &SentenceInterpreter,
    turn: &PendingTurn<'_>,
    request: Request<'_>,
    listener: &mut dyn Listener,
) -> Result<Routed, ModelError> {
    let (away, has_spoken) = (OnceLock::new(), AtomicBool::new(false));
    let mut watching = |event: Event<'_>| {
        match &event {
            Event::Text(_) | Event::Thinking(_) => has_spoken.store(true, Ordering::Relaxed),
            Event::Retrying {
                error: error @ ModelError::Unreachable { .. },
                ..
            } if !has_spoken.load(Ordering::Relaxed) => drop(away.set((*error).clone())),
            _ => {}
        }
        listener.event(event);
    };
    let mut asking = model.reply(request, &mut watching);
    let first = poll_fn(|context| match asking.as_mut().poll(context) {
        Poll::Ready(reply) => Poll::Ready(Some(reply)),
        Poll::Pending if away.get().is_some() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let failed = match first.await {
        None => None,
        Some(Err(error)) if is_absence(&error) && !has_spoken.load(Ordering::Relaxed) => {
            Some(error)
        }
        Some(reply) => return reply.map(Routed::Model),
    };
    let answer = turn.instead(sentences, &mut |_| {}).await;
    match (answer, failed.clone().or_else(|| away.get().cloned())) {
        (Some(answer), Some(error)) => Ok(Routed::Sentences(answer, error)),
        _ => match failed {
            Some(error) => Err(error),
            None => asking.await.map(Routed::Model),
        },
    }
}
