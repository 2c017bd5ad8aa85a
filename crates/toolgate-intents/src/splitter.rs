//! Splits a sentence into several requests: `turn on the lamp and what time is it`. Nothing is done
//! unless every part is understood, because the person didn't ask for half of it.

use std::collections::HashMap;

use super::engine::SentenceEngine;
use super::matcher::MatchTolerance;
use super::meaning::{CallChoice, MatchContext, MissingLists, SentenceMeaning};
use super::words::{Sentence, plain_words};

// A sentence with more breaks is a story rather than a command. The limit also bounds the ways to
// split, which double with each break.
const MAX_BREAKS: usize = 4;

type TokenSpan = (usize, usize);

#[derive(Debug, Clone, Copy)]
struct SentenceBreak {
    end: usize,
    next: usize,
}

#[derive(Debug, Clone)]
enum PartMeaning {
    FillersOnly,
    Act { choice: CallChoice, certain: bool },
}

/// Splits one sentence. Each part is matched once, however many ways to split there are.
pub(super) struct PartSplitter<'a> {
    engine: &'a SentenceEngine,
    sentence: &'a Sentence<'a>,
    context: &'a MatchContext<'a>,
    breaks: Vec<SentenceBreak>,
    /// By the span, the previous span if the part contains `it`, and the tolerance.
    outcomes: HashMap<(TokenSpan, TokenSpan, MatchTolerance), PartOutcome>,
}

#[derive(Debug, Clone)]
enum PartOutcome {
    Understood(PartMeaning),
    /// A question or a plain answer, which can't be combined with other requests.
    Other,
    NotUnderstood,
}

impl SentenceEngine {
    pub(super) fn unsure_failure(&self) -> SentenceMeaning {
        SentenceMeaning::Fail(self.text("unsure").to_owned())
    }

    /// The places where one request may end and the next begin. Empty if there are too many.
    fn find_breaks(&self, sentence: &Sentence<'_>) -> Vec<SentenceBreak> {
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
            breaks: engine.find_breaks(sentence),
            outcomes: HashMap::new(),
        }
    }

    pub(super) fn interpret_parts(
        &mut self,
        tolerance: MatchTolerance,
    ) -> Result<Option<SentenceMeaning>, MissingLists> {
        let mut ways: Vec<u32> = (1..1 << self.breaks.len()).collect();
        ways.sort_by_key(|way| way.count_ones());
        for ways in ways.chunk_by(|one, other| one.count_ones() == other.count_ones()) {
            let mut found: Option<Vec<PartMeaning>> = None;
            for way in ways {
                let Some(requests) = self.interpret_split(*way, tolerance)? else {
                    continue;
                };
                match &found {
                    Some(other) if !has_same_calls(other, &requests) => {
                        return Ok(Some(self.engine.unsure_failure()));
                    }
                    _ => found = Some(requests),
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
    pub(super) fn ends_with_request(&mut self) -> Result<bool, MissingLists> {
        let count = self.sentence.tokens.len();
        for at in self.breaks.clone() {
            let end = self.interpret_alone((at.next, count), MatchTolerance::None)?;
            if let Some(PartMeaning::Act { certain: true, .. }) = end {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn explain_partly_understood(
        &mut self,
    ) -> Result<Option<SentenceMeaning>, MissingLists> {
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

    /// The requests between the breaks that are set in the bit mask `way`, if all are understood.
    fn interpret_split(
        &mut self,
        way: u32,
        tolerance: MatchTolerance,
    ) -> Result<Option<Vec<PartMeaning>>, MissingLists> {
        let count = self.sentence.tokens.len();
        let (end, next) = (count, count);
        let last = SentenceBreak { end, next };
        let taken = (0..self.breaks.len()).filter(|place| way >> place & 1 == 1);
        let taken: Vec<SentenceBreak> = taken.map(|place| self.breaks[place]).collect();
        let mut requests: Vec<PartMeaning> = Vec::new();
        let (mut from, mut before) = (0, TokenSpan::default());
        for at in taken.into_iter().chain([last]) {
            let here = (from, at.end);
            let Some(request) = self.interpret_part(here, before, requests.last(), tolerance)?
            else {
                return Ok(None);
            };
            requests.push(request);
            (before, from) = (here, at.next);
        }
        Ok(Some(requests))
    }

    fn interpret_alone(
        &mut self,
        span: TokenSpan,
        tolerance: MatchTolerance,
    ) -> Result<Option<PartMeaning>, MissingLists> {
        self.interpret_part(span, TokenSpan::default(), None, tolerance)
    }

    fn interpret_part(
        &mut self,
        span: TokenSpan,
        before: TokenSpan,
        previous: Option<&PartMeaning>,
        most: MatchTolerance,
    ) -> Result<Option<PartMeaning>, MissingLists> {
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
            if !self.outcomes.contains_key(&key) {
                let outcome = self.match_part(span, previous, tolerance)?;
                self.outcomes.insert(key, outcome);
            }
            match &self.outcomes[&key] {
                PartOutcome::Understood(request) => return Ok(Some(request.clone())),
                PartOutcome::Other => return Ok(None),
                PartOutcome::NotUnderstood => {}
            }
        }
        Ok(None)
    }

    fn match_part(
        &self,
        span: TokenSpan,
        previous: Option<&PartMeaning>,
        tolerance: MatchTolerance,
    ) -> Result<PartOutcome, MissingLists> {
        let text = self.sentence.text_around(span.0, span.1);
        if self.engine.without_fillers(&plain_words(text)).is_empty() {
            return Ok(PartOutcome::Understood(PartMeaning::FillersOnly));
        }
        let Some(part) = Sentence::parse(text, &self.engine.replace) else {
            return Ok(PartOutcome::NotUnderstood);
        };
        let last: Vec<_> = match previous {
            Some(PartMeaning::Act { choice, .. }) => {
                choice.calls.iter().map(|call| call.slots.clone()).collect()
            }
            _ => self.context.last_slots.to_vec(),
        };
        let context = MatchContext {
            last_slots: &last,
            ..*self.context
        };
        Ok(
            match self.engine.find_meaning(&part, &context, tolerance)? {
                Some(SentenceMeaning::Act {
                    choice, certain, ..
                }) => PartOutcome::Understood(PartMeaning::Act { choice, certain }),
                Some(_) => PartOutcome::Other,
                None => PartOutcome::NotUnderstood,
            },
        )
    }
}

fn combine_parts(requests: Vec<PartMeaning>) -> Option<SentenceMeaning> {
    let mut all_certain = true;
    let steps = requests.into_iter().filter_map(|request| match request {
        PartMeaning::FillersOnly => None,
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
    let calls = |requests: &[PartMeaning]| -> Vec<_> {
        let acts = requests.iter().filter_map(|request| match request {
            PartMeaning::FillersOnly => None,
            PartMeaning::Act { choice, .. } => Some(&choice.calls),
        });
        acts.flatten()
            .map(|call| (call.tool.clone(), call.arguments.clone()))
            .collect()
    };
    calls(one) == calls(other)
}
