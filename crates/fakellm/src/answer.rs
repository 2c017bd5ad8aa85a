//! Scripted answers, and the script that gives them in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Semaphore;

use crate::RecordedRequest;
use crate::rules::Api;

/// The answers to chat requests, in order.
pub struct Script {
    answers: VecDeque<Answer>,
    then: AfterScript,
}

enum AfterScript {
    Refuse,
    Repeat(Answer),
    Ask(Box<dyn FnMut(&RecordedRequest) -> Answer + Send>),
}

impl Script {
    /// One answer for each request; further requests are refused.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            answers: answers.into_iter().collect(),
            then: AfterScript::Refuse,
        }
    }

    /// The same answer to every request.
    pub fn always(answer: Answer) -> Self {
        Self::new([]).then_always(answer)
    }

    /// After the answers so far, gives this one to every request.
    #[must_use]
    pub fn then_always(mut self, answer: Answer) -> Self {
        self.then = AfterScript::Repeat(answer);
        self
    }

    /// Lets a function answer each request.
    pub fn from_fn(answer: impl FnMut(&RecordedRequest) -> Answer + Send + 'static) -> Self {
        Self {
            answers: VecDeque::new(),
            then: AfterScript::Ask(Box::new(answer)),
        }
    }

    pub(crate) fn next(&mut self, request: &RecordedRequest) -> Answer {
        if let Some(answer) = self.answers.pop_front() {
            return answer;
        }
        match &mut self.then {
            AfterScript::Refuse => {
                Answer::fails(400, "invalid_request_error", "the script is at its end")
            }
            AfterScript::Repeat(answer) => answer.clone(),
            AfterScript::Ask(answer) => answer(request),
        }
    }
}

/// One answer: its content, and the faults on its way.
#[derive(Clone)]
pub struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: AnswerBody,
    /// Bytes per chunk; 0 for one chunk per event, as the provider sends them.
    pub(crate) pieces: usize,
    pub(crate) silence: Duration,
    pub(crate) gate: Option<Arc<Semaphore>>,
    pub(crate) fault: Option<(usize, Fault)>,
}

#[derive(Clone)]
pub(crate) enum AnswerBody {
    Said(ScriptedMessage),
    Raw(Vec<u8>),
    /// In the provider's own form.
    Error {
        kind: String,
        message: String,
    },
}

#[derive(Clone, Default)]
pub(crate) struct ScriptedMessage {
    pub(crate) parts: Vec<ScriptedPart>,
    /// Replaces the reason that follows from the parts.
    pub(crate) stop: Option<String>,
    pub(crate) prompt_tokens: Option<u64>,
}

#[derive(Clone)]
pub(crate) enum ScriptedPart {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
    },
}

#[derive(Clone, Copy)]
pub(crate) enum Fault {
    /// The connection is closed.
    Cut,
    Reset,
    /// Nothing more arrives, but the connection stays open.
    Stall,
}

impl Answer {
    fn new(status: u16, body: AnswerBody) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
            pieces: 0,
            silence: Duration::ZERO,
            gate: None,
            fault: None,
        }
    }

    pub fn empty() -> Self {
        Self::new(200, AnswerBody::Said(ScriptedMessage::default()))
    }

    pub fn text(text: &str) -> Self {
        Self::empty().and_text(text)
    }

    pub fn call(id: &str, name: &str, arguments: &Value) -> Self {
        Self::empty().and_call(id, name, arguments)
    }

    /// These exact bytes with status 200, in place of the provider's stream.
    pub fn raw(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, AnswerBody::Raw(body.into()))
    }

    /// An error in the provider's own form.
    pub fn fails(status: u16, kind: &str, message: &str) -> Self {
        let (kind, message) = (kind.to_owned(), message.to_owned());
        Self::new(status, AnswerBody::Error { kind, message })
    }

    /// Never sends a single byte.
    pub fn black_hole() -> Self {
        let mut answer = Self::empty();
        answer.gate = Some(Arc::new(Semaphore::new(0)));
        answer
    }

    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn with_part(mut self, part: ScriptedPart) -> Self {
        if let AnswerBody::Said(said) = &mut self.body {
            said.parts.push(part);
        }
        self
    }

    /// Adds text to the answer.
    #[must_use]
    pub fn and_text(self, text: &str) -> Self {
        self.with_part(ScriptedPart::Text(text.to_owned()))
    }

    /// Adds thinking, with a signature.
    #[must_use]
    pub fn and_thinking(self, text: &str, signature: &str) -> Self {
        let (text, signature) = (text.to_owned(), signature.to_owned());
        self.with_part(ScriptedPart::Thinking { text, signature })
    }

    /// Adds a call. An empty id is omitted if the provider can do without.
    #[must_use]
    pub fn and_call(self, id: &str, name: &str, arguments: &Value) -> Self {
        self.and_broken_call(id, name, &arguments.to_string())
    }

    /// Adds a call whose arguments are this text, even if it isn't JSON.
    #[must_use]
    pub fn and_broken_call(self, id: &str, name: &str, arguments: &str) -> Self {
        self.with_part(ScriptedPart::Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        })
    }

    /// Replaces the stop reason, in the provider's own word.
    #[must_use]
    pub fn stop(mut self, reason: &str) -> Self {
        if let AnswerBody::Said(said) = &mut self.body {
            said.stop = Some(reason.to_owned());
        }
        self
    }

    /// Reports this many prompt tokens.
    #[must_use]
    pub fn prompt_tokens(mut self, count: u64) -> Self {
        if let AnswerBody::Said(said) = &mut self.body {
            said.prompt_tokens = Some(count);
        }
        self
    }

    /// Sends chunks of this many bytes, each in one write.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize) -> Self {
        self.pieces = bytes;
        self
    }

    /// Stays silent for this long before the answer.
    #[must_use]
    pub fn after(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Stays silent until the gate has a permit.
    #[must_use]
    pub fn behind(mut self, gate: &Arc<Semaphore>) -> Self {
        self.gate = Some(Arc::clone(gate));
        self
    }

    /// Closes the connection after this many bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.fault = Some((bytes, Fault::Cut));
        self
    }

    /// Like `cut_after`, in the middle of the first occurrence of this text in the body.
    ///
    /// # Panics
    /// If the body doesn't contain it.
    #[must_use]
    pub fn cut_in(self, api: Api, needle: &str) -> Self {
        let body = self.body_for(api);
        let text = String::from_utf8_lossy(&body);
        let at = text.find(needle);
        let at = at.unwrap_or_else(|| panic!("'{needle}' is not in the answer: {text}"));
        self.cut_after(at + needle.len() / 2)
    }

    /// Resets the connection after this many bytes of the body.
    #[must_use]
    pub fn reset_after(mut self, bytes: usize) -> Self {
        self.fault = Some((bytes, Fault::Reset));
        self
    }

    /// Sends nothing after this many bytes of the body, but keeps the connection open.
    #[must_use]
    pub fn stall_after(mut self, bytes: usize) -> Self {
        self.fault = Some((bytes, Fault::Stall));
        self
    }

    /// The body as this provider would send it.
    pub fn body_for(&self, api: Api) -> Vec<u8> {
        crate::render::body(self, api).concat()
    }
}
