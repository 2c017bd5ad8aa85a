//! Decides whether JSON is at the end of a reply. Only there is it a call: text after it
//! makes it an example.

use super::call_mark::{FENCE, MarkMatch, match_tag};

/// Follows a possible call while the reply grows. Looks at each byte once.
#[derive(Debug)]
pub(super) struct TrailingJson {
    at: usize,
    within: TrailingState,
    fenced: bool,
}

#[derive(Debug)]
enum TrailingState {
    Gap,
    Info,
    Value {
        depth: usize,
        quoted: bool,
        escaped: bool,
    },
    // After a mark that is used only for calls, which may be anywhere.
    Call,
}

impl TrailingJson {
    pub(super) fn starting_at(at: usize) -> Self {
        Self {
            at,
            within: TrailingState::Gap,
            fenced: false,
        }
    }

    pub(super) fn is_example(&mut self, text: &[u8]) -> bool {
        while let Some(byte) = text.get(self.at) {
            match &mut self.within {
                TrailingState::Call => return false,
                TrailingState::Info
                    if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') =>
                {
                    self.at += 1;
                }
                TrailingState::Info => self.within = TrailingState::Gap,
                TrailingState::Value { .. } => self.advance(*byte),
                TrailingState::Gap if byte.is_ascii_whitespace() || *byte == b';' => self.at += 1,
                TrailingState::Gap => match self.enter(&text[self.at..]) {
                    Some(within) => self.within = within,
                    None => return !may_begin(&text[self.at..]),
                },
            }
        }
        false
    }

    fn enter(&mut self, rest: &[u8]) -> Option<TrailingState> {
        if let Some(MarkMatch::Mark(_)) = match_tag(rest) {
            return Some(TrailingState::Call);
        }
        if rest.starts_with(FENCE.as_bytes()) {
            self.at += FENCE.len();
            self.fenced = !self.fenced;
            return Some(if self.fenced {
                TrailingState::Info
            } else {
                TrailingState::Gap
            });
        }
        let is_value = matches!(rest.first(), Some(b'{' | b'['));
        (is_value && !may_begin(rest)).then_some(TrailingState::Value {
            depth: 0,
            quoted: false,
            escaped: false,
        })
    }

    fn advance(&mut self, byte: u8) {
        self.at += 1;
        let TrailingState::Value {
            depth,
            quoted,
            escaped,
        } = &mut self.within
        else {
            return;
        };
        match byte {
            _ if std::mem::take(escaped) => {}
            b'\\' if *quoted => *escaped = true,
            b'"' => *quoted = !*quoted,
            _ if *quoted => {}
            b'{' | b'[' => *depth += 1,
            b'}' | b']' => {
                *depth = depth.saturating_sub(1);
                if *depth == 0 {
                    self.within = TrailingState::Gap;
                }
            }
            _ => {}
        }
    }
}

fn may_begin(rest: &[u8]) -> bool {
    match_tag(rest) == Some(MarkMatch::Maybe) || FENCE.as_bytes().starts_with(rest)
}
