//! Where a call may begin.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// `<tool_call>` of Hermes and Qwen.
    ToolCall,
    /// `<function=name>` of Qwen3-Coder.
    Function,
    /// `<tools>` of Qwen2.5-Coder.
    Tools,
    /// `<|python_tag|>` of Llama.
    Python,
    /// `[TOOL_CALLS]` of Mistral.
    Mistral,
    /// A fence of three backticks at the beginning of a line.
    Fence,
    /// A JSON object or list at the beginning of a line.
    Json,
}

/// All that are words of their own.
pub(super) const TAGS: [(&str, Mark); 5] = [
    ("<tool_call>", Mark::ToolCall),
    ("<function=", Mark::Function),
    ("<tools>", Mark::Tools),
    ("<|python_tag|>", Mark::Python),
    ("[TOOL_CALLS]", Mark::Mistral),
];

pub(super) const FENCE: &str = "```";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Maybe,
    Mark(Mark),
}

#[derive(Debug, Default)]
pub(super) struct Walk {
    at: usize,
    /// There is something other than space on this line already.
    within_line: bool,
    /// Inside a fence that is no call: only its end is of interest.
    fenced: bool,
}

impl Walk {
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next place where a call may begin, which it does not leave by itself.
    pub(super) fn next(&mut self, text: &[u8]) -> Option<Seen> {
        while let Some(byte) = text.get(self.at) {
            if let Some(seen) = self.look(text) {
                if !self.fenced || seen == Seen::Maybe {
                    return Some(seen);
                }
                self.fenced = false;
                self.at += FENCE.len();
                self.within_line = true;
                continue;
            }
            self.step(*byte);
        }
        None
    }

    pub(super) fn pass(&mut self, seen: Seen) {
        let fence = seen == Seen::Mark(Mark::Fence);
        self.fenced |= fence;
        self.at += if fence { FENCE.len() } else { 1 };
        self.within_line = true;
    }

    pub(super) fn leap(&mut self, to: usize) {
        self.at = to;
        self.within_line = false;
    }

    fn step(&mut self, byte: u8) {
        self.at += 1;
        self.within_line = match byte {
            b'\n' => false,
            b' ' | b'\t' | b'\r' => self.within_line,
            _ => true,
        };
    }

    fn look(&self, text: &[u8]) -> Option<Seen> {
        let rest = &text[self.at..];
        let first = rest.first()?;
        if *first == b'`' && !self.within_line {
            return begins(rest, FENCE, Mark::Fence);
        }
        if self.fenced {
            return None;
        }
        let quoted = self.at > 0 && text[self.at - 1] == b'`';
        if matches!(first, b'<' | b'[') && !quoted {
            let tag = tag(rest);
            if tag.is_some() {
                return tag;
            }
        }
        let json = matches!(first, b'{' | b'[') && !self.within_line;
        json.then_some(Seen::Mark(Mark::Json))
    }
}

/// The tag that stands at the beginning of a text, or may stand there when there is more of it.
pub(super) fn tag(rest: &[u8]) -> Option<Seen> {
    let mut tags = TAGS.iter();
    tags.find_map(|(tag, mark)| begins(rest, tag, *mark))
}

fn begins(rest: &[u8], tag: &str, mark: Mark) -> Option<Seen> {
    if rest.starts_with(tag.as_bytes()) {
        Some(Seen::Mark(mark))
    } else {
        tag.as_bytes().starts_with(rest).then_some(Seen::Maybe)
    }
}
