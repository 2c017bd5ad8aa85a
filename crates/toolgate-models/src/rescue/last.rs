//! Plain and fenced JSON is a call only as the last thing of a reply: an example, as soon as anything else comes after it.

use super::mark::{FENCE, Seen, tag};

/// What may be the last thing of a reply, read on while the reply grows. Each byte is looked at once.
#[derive(Debug)]
pub(super) struct Last {
    at: usize,
    within: Within,
    fenced: bool,
}

#[derive(Debug)]
enum Within {
    Gap,
    Info,
    Value {
        depth: usize,
        quoted: bool,
        escaped: bool,
    },
    /// Behind a mark that is made for calls, which counts wherever it stands.
    Call,
}

impl Last {
    pub(super) fn from(at: usize) -> Self {
        Self {
            at,
            within: Within::Gap,
            fenced: false,
        }
    }

    /// True once there is something else behind it.
    pub(super) fn is_example(&mut self, text: &[u8]) -> bool {
        while let Some(byte) = text.get(self.at) {
            match &mut self.within {
                Within::Call => return false,
                Within::Info if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') => {
                    self.at += 1;
                }
                Within::Info => self.within = Within::Gap,
                Within::Value { .. } => self.step(*byte),
                Within::Gap if byte.is_ascii_whitespace() || *byte == b';' => self.at += 1,
                Within::Gap => match self.begin(&text[self.at..]) {
                    Some(within) => self.within = within,
                    None => return !may_begin(&text[self.at..]),
                },
            }
        }
        false
    }

    fn begin(&mut self, rest: &[u8]) -> Option<Within> {
        if let Some(Seen::Mark(_)) = tag(rest) {
            return Some(Within::Call);
        }
        if rest.starts_with(FENCE.as_bytes()) {
            self.at += FENCE.len();
            self.fenced = !self.fenced;
            return Some(if self.fenced {
                Within::Info
            } else {
                Within::Gap
            });
        }
        let is_value = matches!(rest.first(), Some(b'{' | b'['));
        (is_value && !may_begin(rest)).then_some(Within::Value {
            depth: 0,
            quoted: false,
            escaped: false,
        })
    }

    fn step(&mut self, byte: u8) {
        self.at += 1;
        let Within::Value {
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
                    self.within = Within::Gap;
                }
            }
            _ => {}
        }
    }
}

/// True if the text ends in what may become a tag or a fence.
fn may_begin(rest: &[u8]) -> bool {
    tag(rest) == Some(Seen::Maybe) || FENCE.as_bytes().starts_with(rest)
}
