//! Several requests in one sentence: `turn on the lamp and what time is it`. Either every part is
//! understood or nothing is done, because half of a request is not what the person wants.

use std::collections::{BTreeSet, HashMap};

use super::engine::SentenceEngine;
use super::matcher::MatchTolerance;
use super::meaning::{CallChoice, MatchContext, SentenceMeaning};
use super::words::{Sentence, plain_words};

// More possible breaks mean a story rather than a command. It also bounds the ways to split, which
// double with each.
const MAX_BREAKS: usize = 4;

type TokenSpan = (usize, usize);

#[derive(Debug, Clone, Copy)]
struct SentenceBreak {
    end: usize,
    next: usize,
}

#[derive(Debug, Clone)]
enum PartMeaning {
    Nothing,
    Act { choice: CallChoice, certain: bool },
}

/// Splits a sentence. Each part is matched once, however many ways to split there are.
pub(super) struct PartSplitter<'a> {
    engine: &'a SentenceEngine,
    sentence: &'a Sentence<'a>,
    context: &'a MatchContext<'a>,
    breaks: Vec<SentenceBreak>,
    /// By span, the span before if the part contains `it`, and the tolerance.
    known: HashMap<(TokenSpan, TokenSpan, MatchTolerance), PartOutcome>,
}

#[derive(Debug, Clone)]
enum PartOutcome {
    Understood(PartMeaning),
    /// A question or a plain answer, which can't be combined with other requests.
    Other,
    Nothing,
}

impl SentenceEngine {
    pub(super) fn unsure_failure(&self) -> SentenceMeaning {
        SentenceMeaning::Fail(self.text("unsure").to_owned())
    }

    /// Empty if there are too many.
    fn breaks(&self, sentence: &Sentence<'_>) -> Vec<SentenceBreak> {
        let groups = &self.pack.groups;
        let joins = |at: usize| {
            let word = &sentence.tokens[at].text;
            groups.and.contains(word) || groups.then.contains(word)
        };
        let count = sentence.tokens.len();
        let (mut breaks, mut at) = (Vec::new(), 1);
        while at < count {
            let next = (at..count).find(|at| !joins(*at)).unwrap_or(count);
            if next < count && (next > at || sentence.is_separated(at)) {
                breaks.push(SentenceBreak { end: at, next });
            }
            at = next.max(at + 1);
        }
        if breaks.len() > MAX_BREAKS {
            breaks.clear();
        }
        breaks
    }
}

impl<'a> PartSplitter<'a> {
    pub(super) fn new(
        engine: &'a SentenceEngine,
        sentence: &'a Sentence<'a>,
        context: &'a MatchContext<'a>,
    ) -> Self {
        Self {
            engine,
            sentence,
            context,
            breaks: engine.breaks(sentence),
            known: HashMap::new(),
        }
    }

    pub(super) fn interpret_parts(
        &mut self,
        tolerance: MatchTolerance,
    ) -> Result<Option<SentenceMeaning>, BTreeSet<usize>> {
        let mut ways: Vec<u32> = (1..1 << self.breaks.len()).collect();
        ways.sort_by_key(|way| way.count_ones());
        for ways in ways.chunk_by(|one, other| one.count_ones() == other.count_ones()) {
            let mut found: Option<Vec<PartMeaning>> = None;
            for way in ways {
                let Some(wishes) = self.interpret_split(*way, tolerance)? else {
                    continue;
                };
                match &found {
                    Some(other) if !has_same_calls(other, &wishes) => {
                        return Ok(Some(self.engine.unsure_failure()));
                    }
                    _ => found = Some(wishes),
                }
            }
            if let Some(meaning) = found.and_then(combine_parts) {
                return Ok(Some(meaning));
            }
        }
        Ok(None)
    }

    /// True if the end of an uncertain sentence is a certain request by itself: `search for cats
    /// and turn on the lamp`.
    pub(super) fn ends_with_request(&mut self) -> Result<bool, BTreeSet<usize>> {
        let count = self.sentence.tokens.len();
        for at in self.breaks.clone() {
            let end = self.interpret_alone((at.next, count), MatchTolerance::None)?;
            if let Some(PartMeaning::Act { certain: true, .. }) = end {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn explain_half(&mut self) -> Result<Option<SentenceMeaning>, BTreeSet<usize>> {
        let count = self.sentence.tokens.len();
        let breaks = self.breaks.clone();
        let ends = breaks
            .iter()
            .rev()
            .map(|at| ((0, at.end), (at.next, count)));
        let begins = breaks.iter().map(|at| ((at.next, count), (0, at.end)));
        for (understood, rest) in ends.chain(begins) {
            if let Some(PartMeaning::Act { .. }) =
                self.interpret_alone(understood, MatchTolerance::Spelling)?
            {
                let written = |(from, to): TokenSpan| self.sentence.text_between(from, to);
                let words = [("wish", written(understood)), ("rest", written(rest))];
                let half = self.engine.fill_text("half", &words);
                return Ok(Some(SentenceMeaning::Fail(half)));
            }
        }
        Ok(None)
    }

    /// The requests between the breaks whose bits are set in `way`, if all are understood.
    fn interpret_split(
        &mut self,
        way: u32,
        tolerance: MatchTolerance,
    ) -> Result<Option<Vec<PartMeaning>>, BTreeSet<usize>> {
        let count = self.sentence.tokens.len();
        let (end, next) = (count, count);
        let last = SentenceBreak { end, next };
        let taken = (0..self.breaks.len()).filter(|place| way >> place & 1 == 1);
        let taken: Vec<SentenceBreak> = taken.map(|place| self.breaks[place]).collect();
        let mut wishes: Vec<PartMeaning> = Vec::new();
        let (mut from, mut before) = (0, TokenSpan::default());
        for at in taken.into_iter().chain([last]) {
            let here = (from, at.end);
            let Some(wish) = self.interpret_part(here, before, wishes.last(), tolerance)? else {
                return Ok(None);
            };
            wishes.push(wish);
            (before, from) = (here, at.next);
        }
        Ok(Some(wishes))
    }

    fn interpret_alone(
        &mut self,
        span: TokenSpan,
        tolerance: MatchTolerance,
    ) -> Result<Option<PartMeaning>, BTreeSet<usize>> {
        self.interpret_part(span, TokenSpan::default(), None, tolerance)
    }

    fn interpret_part(
        &mut self,
        span: TokenSpan,
        before: TokenSpan,
        meant: Option<&PartMeaning>,
        most: MatchTolerance,
    ) -> Result<Option<PartMeaning>, BTreeSet<usize>> {
        let words = &self.sentence.tokens[span.0..span.1];
        let pronouns = &self.engine.pack.pronouns;
        let before = match words.iter().any(|word| pronouns.contains(&word.text)) {
            true => before,
            false => TokenSpan::default(),
        };
        use MatchTolerance::{None as Exact, Spelling, Unknown};
        for tolerance in [Exact, Spelling, Unknown]
            .into_iter()
            .take_while(|one| *one <= most)
        {
            let key = (span, before, tolerance);
            if !self.known.contains_key(&key) {
                let heard = self.match_part(span, meant, tolerance)?;
                self.known.insert(key, heard);
            }
            match &self.known[&key] {
                PartOutcome::Understood(wish) => return Ok(Some(wish.clone())),
                PartOutcome::Other => return Ok(None),
                PartOutcome::Nothing => {}
            }
        }
        Ok(None)
    }

    fn match_part(
        &self,
        span: TokenSpan,
        meant: Option<&PartMeaning>,
        tolerance: MatchTolerance,
    ) -> Result<PartOutcome, BTreeSet<usize>> {
        let text = self.sentence.text_around(span.0, span.1);
        if self.engine.without_fillers(&plain_words(text)).is_empty() {
            return Ok(PartOutcome::Understood(PartMeaning::Nothing));
        }
        let Some(part) = Sentence::parse(text, &self.engine.replace) else {
            return Ok(PartOutcome::Nothing);
        };
        let last: Vec<_> = match meant {
            Some(PartMeaning::Act { choice, .. }) => {
                choice.calls.iter().map(|call| call.slots.clone()).collect()
            }
            _ => self.context.last.to_vec(),
        };
        let context = MatchContext {
            last: &last,
            ..*self.context
        };
        Ok(
            match self.engine.find_meaning(&part, &context, tolerance)? {
                Some(SentenceMeaning::Act {
                    choice, certain, ..
                }) => PartOutcome::Understood(PartMeaning::Act { choice, certain }),
                Some(_) => PartOutcome::Other,
                None => PartOutcome::Nothing,
            },
        )
    }
}

fn combine_parts(wishes: Vec<PartMeaning>) -> Option<SentenceMeaning> {
    let mut all_certain = true;
    let steps = wishes.into_iter().filter_map(|wish| match wish {
        PartMeaning::Nothing => None,
        PartMeaning::Act { choice, certain } => {
            all_certain &= certain;
            Some(choice)
        }
    });
    let mut steps: Vec<CallChoice> = steps.collect();
    if steps.is_empty() {
        return None;
    }
    let choice = steps.remove(0);
    Some(SentenceMeaning::Act {
        choice,
        then: steps,
        certain: all_certain,
    })
}

fn has_same_calls(one: &[PartMeaning], other: &[PartMeaning]) -> bool {
    let calls = |wishes: &[PartMeaning]| -> Vec<_> {
        let acts = wishes.iter().filter_map(|wish| match wish {
            PartMeaning::Nothing => None,
            PartMeaning::Act { choice, .. } => Some(&choice.calls),
        });
        acts.flatten()
            .map(|call| (call.tool.clone(), call.arguments.clone()))
            .collect()
    };
    calls(one) == calls(other)
}
