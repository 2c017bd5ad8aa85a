//! A source of which something was heard already.

use futures::future::BoxFuture;

use super::{Heard, Source};
use crate::EngineError;

/// The same source from its beginning; `first` is what was taken from it, or its end.
pub(crate) fn begun(first: Option<Heard>, rest: Box<dyn Source>) -> Box<dyn Source> {
    Box::new(Begun {
        first: Some(first),
        rest,
    })
}

struct Begun {
    first: Option<Option<Heard>>,
    rest: Box<dyn Source>,
}

impl Source for Begun {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Heard>, EngineError>> {
        match self.first.take() {
            Some(first) => Box::pin(async { Ok(first) }),
            None => self.rest.next(),
        }
    }
}
