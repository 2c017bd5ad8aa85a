//! Finds the places in a text where a call may begin.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallMark {
    // `<tool_call>` of Hermes and Qwen.
    ToolCall,
    // `<function=name>` of Qwen3-Coder.
    Function,
    // `<tools>` of Qwen2.5-Coder.
    Tools,
    // `<|python_tag|>` of Llama.
    Python,
    // `[TOOL_CALLS]` of Mistral.
    Mistral,
    // A fence of three backticks at the beginning of a line.
    Fence,
    // A JSON object or list at the beginning of a line.
    Json,
}

// The marks that are fixed strings.
pub(super) const TAGS: [(&str, CallMark); 5] = [
    ("<tool_call>", CallMark::ToolCall),
    ("<function=", CallMark::Function),
    ("<tools>", CallMark::Tools),
    ("<|python_tag|>", CallMark::Python),
    ("[TOOL_CALLS]", CallMark::Mistral),
];

pub(super) const FENCE: &str = "```";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkMatch {
    // The text ends within what may be a mark.
    Maybe,
    Mark(CallMark),
}

#[derive(Debug, Default)]
pub(super) struct MarkScanner {
    at: usize,
    // The current line has something other than white space before `at`.
    within_line: bool,
    // In a fenced code block that isn't a call. Only its end is looked for.
    fenced: bool,
}

impl MarkScanner {
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The next place where a call may begin. Returns the same place again until the caller skips
    /// it or jumps behind it.
    pub(super) fn next(&mut self, text: &[u8]) -> Option<MarkMatch> {
        while let Some(byte) = text.get(self.at) {
            if let Some(seen) = self.match_here(text) {
                if !self.fenced || seen == MarkMatch::Maybe {
                    return Some(seen);
                }
                self.fenced = false;
                self.at += FENCE.len();
                self.within_line = true;
                continue;
            }
            self.advance(*byte);
        }
        None
    }

    pub(super) fn skip(&mut self, seen: MarkMatch) {
        let fence = seen == MarkMatch::Mark(CallMark::Fence);
        self.fenced |= fence;
        self.at += if fence { FENCE.len() } else { 1 };
        self.within_line = true;
    }

    pub(super) fn jump_to(&mut self, to: usize) {
        self.at = to;
        self.within_line = false;
    }

    fn advance(&mut self, byte: u8) {
        self.at += 1;
        self.within_line = match byte {
            b'\n' => false,
            b' ' | b'\t' | b'\r' => self.within_line,
            _ => true,
        };
    }

    fn match_here(&self, text: &[u8]) -> Option<MarkMatch> {
        let rest = &text[self.at..];
        let first = rest.first()?;
        if *first == b'`' && !self.within_line {
            return match_prefix(rest, FENCE, CallMark::Fence);
        }
        if self.fenced {
            return None;
        }
        let quoted = self.at > 0 && text[self.at - 1] == b'`';
        if matches!(first, b'<' | b'[') && !quoted {
            let tag = match_tag(rest);
            if tag.is_some() {
                return tag;
            }
        }
        let json = matches!(first, b'{' | b'[') && !self.within_line;
        json.then_some(MarkMatch::Mark(CallMark::Json))
    }
}

pub(super) fn match_tag(rest: &[u8]) -> Option<MarkMatch> {
    let mut tags = TAGS.iter();
    tags.find_map(|(tag, mark)| match_prefix(rest, tag, *mark))
}

fn match_prefix(rest: &[u8], tag: &str, mark: CallMark) -> Option<MarkMatch> {
    if rest.starts_with(tag.as_bytes()) {
        Some(MarkMatch::Mark(mark))
    } else {
        tag.as_bytes().starts_with(rest).then_some(MarkMatch::Maybe)
    }
}
