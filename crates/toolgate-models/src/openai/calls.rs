//! Assembles calls from the pieces in which they are streamed.
//!
//! A piece has the index of its call, and the first one also has the id and the name. Not all
//! servers follow that: some omit the index, send a call in one piece, repeat the name in each
//! piece, or use index 0 for all calls.

use super::wire::CallPiece;
use crate::message::MAX_PARTS;
use crate::{CallArguments, Catalog, ModelCall};

#[derive(Default)]
pub(super) struct CallAssembler(Vec<OpenCall>);

struct OpenCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    balance: JsonBalance,
}

impl CallAssembler {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a piece. Returns false if it begins more calls than are accepted.
    #[must_use]
    pub(super) fn add(&mut self, piece: &CallPiece<'_>) -> bool {
        let id = piece.id.as_deref().unwrap_or_default();
        let function = piece.function.as_ref();
        let name = function.and_then(|function| function.name.as_deref());
        let name = name.unwrap_or_default();
        let arguments = function.map(super::wire::FunctionPiece::arguments);
        let arguments = arguments.as_deref().unwrap_or_default();
        if id.is_empty() && name.is_empty() && arguments.is_empty() {
            return true;
        }
        let place = self.find_call(piece.index, id);
        let place = place.filter(|place| !self.0[*place].starts_other_call(id, name, arguments));
        let call = match place {
            Some(place) => &mut self.0[place],
            None if self.0.len() == MAX_PARTS => return false,
            None => {
                self.0.push(OpenCall {
                    index: piece.index,
                    id: id.to_owned(),
                    name: name.to_owned(),
                    arguments: String::new(),
                    balance: JsonBalance::default(),
                });
                let last = self.0.len() - 1;
                &mut self.0[last]
            }
        };
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        call.arguments.push_str(arguments);
        call.balance.feed(arguments);
        true
    }

    fn find_call(&self, index: Option<u64>, id: &str) -> Option<usize> {
        let calls = &self.0;
        match index {
            Some(_) => calls.iter().rposition(|call| call.index == index),
            None if !id.is_empty() => calls.iter().rposition(|call| call.id == id),
            None => calls.len().checked_sub(1),
        }
    }

    /// All calls. If the reply was cut off, the last one is dropped unless
    /// its arguments are complete.
    pub(super) fn finish(self, catalog: &Catalog, is_truncated: bool) -> Vec<ModelCall> {
        let last = self.0.len().saturating_sub(1);
        let calls = self.0.into_iter().enumerate();
        let calls =
            calls.filter(|(index, call)| !(is_truncated && *index == last && call.is_incomplete()));
        calls
            .map(|(_, call)| ModelCall {
                id: ModelCall::id_or_new(call.id),
                name: catalog.listed_name(&call.name),
                arguments: CallArguments::parse(&call.arguments),
            })
            .collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn has_open_arguments(&self) -> bool {
        self.0.iter().any(|call| call.balance.is_open())
    }
}

impl OpenCall {
    fn starts_other_call(&self, id: &str, name: &str, arguments: &str) -> bool {
        if !id.is_empty() && !self.id.is_empty() {
            // The same call again, id included, counts as a second call. The conversation drops
            // duplicates.
            let is_echo = !name.is_empty() && !arguments.is_empty() && self.balance.is_whole();
            // Some servers give each piece its own id. A piece without a name continues a call
            // whose JSON is still open.
            let is_piece = name.is_empty() && self.balance.is_open();
            return if id == self.id { is_echo } else { !is_piece };
        }
        let is_named = !name.is_empty() && !self.name.is_empty();
        // Some servers repeat the name in each piece, even in one without arguments.
        let is_repeated = name == self.name && (arguments.is_empty() || !self.balance.is_whole());
        is_named && !is_repeated
    }

    fn is_incomplete(&self) -> bool {
        self.arguments.trim().is_empty()
            || matches!(
                CallArguments::parse(&self.arguments),
                CallArguments::Unusable(_)
            )
    }
}

// Follows brackets and strings, to know whether a call's JSON has ended.
#[derive(Default)]
struct JsonBalance {
    depth: usize,
    begun: bool,
    in_string: bool,
    escaped: bool,
}

impl JsonBalance {
    fn feed(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.begun |= !byte.is_ascii_whitespace();
        }
    }

    fn is_open(&self) -> bool {
        self.in_string || self.depth > 0
    }

    fn is_whole(&self) -> bool {
        self.begun && !self.is_open()
    }
}
