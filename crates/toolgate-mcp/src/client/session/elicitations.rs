//! [`OpenElicitations`]: the pages that clients were sent to, until their server says that they are
//! done. Only in 2025-11-25.

use std::collections::VecDeque;
use std::sync::Weak;

use parking_lot::Mutex;
use serde_json::Value;
use toolgate_core::{CallContext, ElicitationListener, Question, QuestionHandler};

use super::ClientSession;
use crate::client::message::RpcError;
use crate::era::LEGACY;

// Pages of one server that clients may have open. Beyond that the oldest is forgotten, because most
// servers never say that a page is done.
const MAX_OPEN: usize = 256;
const MAX_ID_LEN: usize = 256;
// A person has to open a page before the request can work.
const PAGE_REQUIRED: i64 = -32042;

#[derive(Default)]
pub(super) struct OpenElicitations(Mutex<VecDeque<OpenElicitation>>);

struct OpenElicitation {
    id: String,
    listener: Weak<dyn ElicitationListener>,
}

impl OpenElicitations {
    fn add(&self, params: &Value, handler: &dyn QuestionHandler) {
        let id = params["elicitationId"].as_str();
        let id = id.filter(|id| params["mode"] == "url" && id.len() <= MAX_ID_LEN);
        let (Some(id), Some(listener)) = (id, handler.elicitation_listener()) else {
            return;
        };
        let mut open = self.0.lock();
        let is_same = |known: &OpenElicitation| known.id == id && known.listener.ptr_eq(listener);
        open.retain(|known| known.listener.strong_count() > 0 && !is_same(known));
        if open.len() == MAX_OPEN {
            open.pop_front();
        }
        open.push_back(OpenElicitation {
            id: id.to_owned(),
            listener: listener.clone(),
        });
    }

    /// Tells the clients that were given this id. False if there is none.
    fn complete(&self, id: &str) -> bool {
        let mut open = self.0.lock();
        let (done, left): (Vec<_>, Vec<_>) = open.drain(..).partition(|known| known.id == id);
        *open = left.into();
        drop(open);
        let listeners = done.iter().filter_map(|known| known.listener.upgrade());
        listeners
            .map(|listener| listener.elicitation_completed(id))
            .count()
            > 0
    }
}

impl ClientSession {
    /// Notes the pages among the questions that a client is about to be asked.
    pub(super) fn note_pages(&self, questions: &[Question], handler: &dyn QuestionHandler) {
        if self.revision.get().is_some_and(|it| **it == *LEGACY) {
            let pages = questions
                .iter()
                .filter(|it| it.method == "elicitation/create");
            pages.for_each(|page| self.elicitations.add(&page.params, handler));
        }
    }

    /// Notes the pages that an error wants the caller to open.
    pub(super) fn note_required_pages(&self, error: &RpcError, call: &CallContext) {
        let pages = error.data["elicitations"].as_array();
        let handler = call.questions();
        if let (PAGE_REQUIRED, Some(pages), Some(handler)) = (error.code, pages, handler)
            && self.revision.get().is_some_and(|it| **it == *LEGACY)
        {
            let pages = pages.iter().take(MAX_OPEN);
            pages.for_each(|page| self.elicitations.add(page, &**handler));
        }
    }

    /// False if no client was sent to this page.
    pub(super) fn complete_elicitation(&self, params: &Value) -> bool {
        let id = params["elicitationId"].as_str();
        id.is_some_and(|id| self.elicitations.complete(id))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::future::BoxFuture;
    use serde_json::json;
    use toolgate_core::{ClientId, QuestionError};

    use super::*;

    #[derive(Default)]
    struct CompletedPages(Mutex<Vec<String>>);

    impl ElicitationListener for CompletedPages {
        fn elicitation_completed(&self, id: &str) {
            self.0.lock().push(id.to_owned());
        }
    }

    struct PageReader(Option<Weak<dyn ElicitationListener>>);

    impl QuestionHandler for PageReader {
        fn client(&self) -> ClientId {
            ClientId::unique()
        }

        fn capabilities(&self) -> &Value {
            &Value::Null
        }

        fn ask<'a>(&'a self, _: Vec<Question>) -> BoxFuture<'a, Result<Vec<Value>, QuestionError>> {
            Box::pin(async { Ok(Vec::new()) })
        }

        fn elicitation_listener(&self) -> Option<&Weak<dyn ElicitationListener>> {
            self.0.as_ref()
        }
    }

    fn reader() -> (Arc<CompletedPages>, PageReader) {
        let pages = Arc::new(CompletedPages::default());
        let listener: Arc<dyn ElicitationListener> = Arc::clone(&pages) as _;
        (pages, PageReader(Some(Arc::downgrade(&listener))))
    }

    fn page(id: &str) -> Value {
        json!({ "mode": "url", "url": "https://example.org", "elicitationId": id })
    }

    #[test]
    fn a_page_is_done_once_and_only_for_the_client_that_was_sent_to_it() {
        let open = OpenElicitations::default();
        let ((ada, of_ada), (bob, of_bob)) = (reader(), reader());
        open.add(&page("a"), &of_ada);
        open.add(&page("b"), &of_bob);
        open.add(&json!({ "mode": "form", "elicitationId": "c" }), &of_bob);
        open.add(&json!({ "mode": "url", "elicitationId": 4 }), &of_bob);
        open.add(&page(&"x".repeat(MAX_ID_LEN + 1)), &of_bob);
        open.add(&page("d"), &PageReader(None));
        for unknown in ["", "c", "d", "4"] {
            assert!(!open.complete(unknown), "{unknown}");
        }
        assert!(open.complete("a"));
        assert!(!open.complete("a"));
        assert_eq!(*ada.0.lock(), ["a"]);
        drop(bob);
        assert!(!open.complete("b"), "the client is gone");
    }

    #[test]
    fn pages_that_are_never_done_take_bounded_memory() {
        let open = OpenElicitations::default();
        let (pages, reader) = reader();
        for _ in 0..3 {
            open.add(&page("same"), &reader);
        }
        for n in 0..2 * MAX_OPEN {
            open.add(&page(&n.to_string()), &reader);
        }
        assert_eq!(open.0.lock().len(), MAX_OPEN);
        assert!(!open.complete("same") && open.complete("511"));
        assert_eq!(*pages.0.lock(), ["511"]);
    }
}
