//! What a double answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Semaphore;

use crate::Recorded;
use crate::rules::Api;

/// Answers to requests for chat, in turn.
pub struct Script {
    answers: VecDeque<Answer>,
    then: Then,
}

enum Then {
    Refuse,
    Repeat(Answer),
    Ask(Box<dyn FnMut(&Recorded) -> Answer + Send>),
}

impl Script {
    /// These, one for each request; a request more is refused.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            answers: answers.into_iter().collect(),
            then: Then::Refuse,
        }
    }

    /// The same to every request.
    pub fn always(answer: Answer) -> Self {
        Self::new([]).then_always(answer)
    }

    /// After those so far, this to every request.
    #[must_use]
    pub fn then_always(mut self, answer: Answer) -> Self {
        self.then = Then::Repeat(answer);
        self
    }

    /// Whatever the function makes of a request.
    pub fn by(answer: impl FnMut(&Recorded) -> Answer + Send + 'static) -> Self {
        Self {
            answers: VecDeque::new(),
            then: Then::Ask(Box::new(answer)),
        }
    }

    pub(crate) fn next(&mut self, request: &Recorded) -> Answer {
        if let Some(answer) = self.answers.pop_front() {
            return answer;
        }
        match &mut self.then {
            Then::Refuse => Answer::fails(400, "invalid_request_error", "the script is at its end"),
            Then::Repeat(answer) => answer.clone(),
            Then::Ask(answer) => answer(request),
        }
    }
}

/// One answer: what is said, and how well it arrives.
#[derive(Clone)]
pub struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
    /// Bytes of each chunk; 0: as the provider would.
    pub(crate) pieces: usize,
    pub(crate) silence: Duration,
    pub(crate) gate: Option<Arc<Semaphore>>,
    pub(crate) fault: Option<(usize, Fault)>,
}

#[derive(Clone)]
pub(crate) enum Body {
    Said(Said),
    Raw(Vec<u8>),
    /// In the provider's own form.
    Error {
        kind: String,
        message: String,
    },
}

/// What a model says in one reply.
#[derive(Clone, Default)]
pub(crate) struct Said {
    pub(crate) parts: Vec<Say>,
    /// Instead of what follows from the parts.
    pub(crate) stop: Option<String>,
    pub(crate) prompt_tokens: Option<u64>,
}

#[derive(Clone)]
pub(crate) enum Say {
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
    /// Nothing more comes.
    Stall,
}

impl Answer {
    fn of(status: u16, body: Body) -> Self {
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

    /// Nothing is said yet.
    pub fn empty() -> Self {
        Self::of(200, Body::Said(Said::default()))
    }

    /// Words.
    pub fn text(text: &str) -> Self {
        Self::empty().and_text(text)
    }

    /// A call.
    pub fn call(id: &str, name: &str, arguments: &Value) -> Self {
        Self::empty().and_call(id, name, arguments)
    }

    /// These very bytes under 200, as the stream of the provider.
    pub fn raw(body: impl Into<Vec<u8>>) -> Self {
        Self::of(200, Body::Raw(body.into()))
    }

    /// An error in the provider's own form.
    pub fn fails(status: u16, kind: &str, message: &str) -> Self {
        let (kind, message) = (kind.to_owned(), message.to_owned());
        Self::of(status, Body::Error { kind, message })
    }

    /// Never a single byte.
    pub fn black_hole() -> Self {
        let mut answer = Self::empty();
        answer.gate = Some(Arc::new(Semaphore::new(0)));
        answer
    }

    /// Another status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// One more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn and(mut self, part: Say) -> Self {
        if let Body::Said(said) = &mut self.body {
            said.parts.push(part);
        }
        self
    }

    /// And words.
    #[must_use]
    pub fn and_text(self, text: &str) -> Self {
        self.and(Say::Text(text.to_owned()))
    }

    /// And thinking, signed.
    #[must_use]
    pub fn and_thinking(self, text: &str, signature: &str) -> Self {
        let (text, signature) = (text.to_owned(), signature.to_owned());
        self.and(Say::Thinking { text, signature })
    }

    /// And a call; without an id where it is empty and the provider can do without.
    #[must_use]
    pub fn and_call(self, id: &str, name: &str, arguments: &Value) -> Self {
        self.and_broken_call(id, name, &arguments.to_string())
    }

    /// And a call whose arguments are this text, whatever it is.
    #[must_use]
    pub fn and_broken_call(self, id: &str, name: &str, arguments: &str) -> Self {
        self.and(Say::Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        })
    }

    /// Stopped for another reason, in the provider's word.
    #[must_use]
    pub fn stop(mut self, reason: &str) -> Self {
        if let Body::Said(said) = &mut self.body {
            said.stop = Some(reason.to_owned());
        }
        self
    }

    /// Claims to have read this many tokens.
    #[must_use]
    pub fn prompt_tokens(mut self, count: u64) -> Self {
        if let Body::Said(said) = &mut self.body {
            said.prompt_tokens = Some(count);
        }
        self
    }

    /// In chunks of this many bytes, each written by itself.
    #[must_use]
    pub fn in_pieces(mut self, bytes: usize) -> Self {
        self.pieces = bytes;
        self
    }

    /// Nothing at all for this long, then the answer.
    #[must_use]
    pub fn after(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Nothing at all until the gate has a permit.
    #[must_use]
    pub fn behind(mut self, gate: &Arc<Semaphore>) -> Self {
        self.gate = Some(Arc::clone(gate));
        self
    }

    /// After this many bytes of the body the connection is closed.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.fault = Some((bytes, Fault::Cut));
        self
    }

    /// The same, in the middle of the first place where this stands in the body.
    ///
    /// # Panics
    /// If it stands nowhere.
    #[must_use]
    pub fn cut_in(self, api: Api, needle: &str) -> Self {
        let body = self.body_for(api);
        let text = String::from_utf8_lossy(&body);
        let at = text.find(needle);
        let at = at.unwrap_or_else(|| panic!("'{needle}' is not in the answer: {text}"));
        self.cut_after(at + needle.len() / 2)
    }

    /// After this many bytes of the body the connection is reset.
    #[must_use]
    pub fn reset_after(mut self, bytes: usize) -> Self {
        self.fault = Some((bytes, Fault::Reset));
        self
    }

    /// After this many bytes of the body nothing more comes, and the connection stays.
    #[must_use]
    pub fn stall_after(mut self, bytes: usize) -> Self {
        self.fault = Some((bytes, Fault::Stall));
        self
    }

    /// The body as this provider would send it.
    pub fn body_for(&self, api: Api) -> Vec<u8> {
        crate::speak::body(self, api).concat()
    }
}
