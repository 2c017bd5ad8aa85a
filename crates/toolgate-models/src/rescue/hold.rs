//! Text on its way to the person, held back where a call may be written in it.

use super::mark::{FENCE, Mark, Seen, Walk, tag};
use super::{rescue, words};
use crate::{Event, Listener, ModelCall, Offer};

/// How far ahead it is decided whether JSON or a fence may be a call.
const FAR_ENOUGH: usize = 256;

/// The first key of a call in JSON.
const FIRST_KEYS: [&str; 6] = ["name", "function", "type", "id", "arguments", "parameters"];

/// Gathers the text of a reply, and tells each piece at once unless it may be the beginning of a call: then it is told when
/// it turns out to be none, at the latest when the reply ends.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    /// `None`: nothing is held back.
    walk: Option<Walk>,
    text: String,
    told: usize,
    held: bool,
}

enum Verdict {
    Call,
    Maybe,
    Text,
}

impl Hold {
    /// Without `rescue`, it tells everything at once and finds no calls.
    pub(crate) fn new(rescue: bool) -> Self {
        Self {
            walk: rescue.then(Walk::default),
            ..Self::default()
        }
    }

    /// How much text came so far, told or not.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// More text.
    pub(crate) fn push(&mut self, piece: &str, listener: &mut dyn Listener) {
        self.text.push_str(piece);
        let until = self.decided();
        self.tell(until, listener);
    }

    /// The reply has ended. With an offer, calls of its tools are taken out of the text; without, the text is what it is.
    pub(crate) fn finish(
        mut self,
        offer: Option<&Offer>,
        listener: &mut dyn Listener,
    ) -> (String, Vec<ModelCall>) {
        let offer = offer.filter(|_| self.walk.is_some());
        let Some(rescued) = offer.and_then(|offer| rescue(&self.text, offer)) else {
            self.tell(self.text.len(), listener);
            return (self.text, Vec::new());
        };
        let rest = words(&self.text, &rescued.kept, self.told);
        if !rest.is_empty() {
            listener.event(Event::Text(&rest));
        }
        for call in &rescued.calls {
            let name = &call.name;
            listener.event(Event::Notice(&format!(
                "the model wrote its call of '{name}' as text; it was understood"
            )));
        }
        (rescued.text, rescued.calls)
    }

    /// Up to where the text is certain to be no call.
    fn decided(&mut self) -> usize {
        let Some(walk) = self.walk.as_mut().filter(|_| !self.held) else {
            return if self.held {
                self.told
            } else {
                self.text.len()
            };
        };
        let bytes = self.text.as_bytes();
        while let Some(seen) = walk.next(bytes) {
            match judge(seen, &bytes[walk.at()..]) {
                Verdict::Text => walk.pass(seen),
                Verdict::Maybe => return walk.at(),
                Verdict::Call => {
                    self.held = true;
                    return walk.at();
                }
            }
        }
        self.text.len()
    }

    fn tell(&mut self, until: usize, listener: &mut dyn Listener) {
        if until > self.told {
            listener.event(Event::Text(&self.text[self.told..until]));
            self.told = until;
        }
    }
}

fn judge(seen: Seen, rest: &[u8]) -> Verdict {
    let near = &rest[..rest.len().min(FAR_ENOUGH)];
    let verdict = match seen {
        Seen::Maybe => Verdict::Maybe,
        Seen::Mark(Mark::Fence) => fence(near),
        Seen::Mark(Mark::Json) => json(near),
        Seen::Mark(_) => Verdict::Call,
    };
    match verdict {
        Verdict::Maybe if rest.len() > FAR_ENOUGH => Verdict::Text,
        verdict => verdict,
    }
}

/// A fence around something that is no code.
fn fence(rest: &[u8]) -> Verdict {
    let info = &rest[FENCE.len()..];
    let word = info
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let body = info[word.count()..].trim_ascii_start();
    match body.first() {
        None => Verdict::Maybe,
        Some(b'{') => json(body),
        Some(b'<' | b'[') => match tag(body) {
            Some(Seen::Maybe) => Verdict::Maybe,
            Some(Seen::Mark(_)) => Verdict::Call,
            None => json(body),
        },
        _ => Verdict::Text,
    }
}

/// An object, or a list of objects, that begins like a call.
fn json(rest: &[u8]) -> Verdict {
    let inside = match rest.first() {
        Some(b'[') => rest[1..].trim_ascii_start(),
        _ => rest,
    };
    let key = match inside.first() {
        None => return Verdict::Maybe,
        Some(b'{') => inside[1..].trim_ascii_start(),
        Some(_) => return Verdict::Text,
    };
    match key.first() {
        None => Verdict::Maybe,
        Some(b'"') => match memchr::memchr(b'"', &key[1..]) {
            None => Verdict::Maybe,
            Some(length) => {
                let key = &key[1..=length];
                let mut known = FIRST_KEYS.iter();
                if known.any(|known| known.as_bytes() == key) {
                    Verdict::Call
                } else {
                    Verdict::Text
                }
            }
        },
        Some(_) => Verdict::Text,
    }
}
