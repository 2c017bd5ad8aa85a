//! Several wishes in one sentence: `turn on the lamp and what time is it`. All of them are understood, each by itself, or nothing is
//! done: half of what somebody wants is not what they want.

use std::collections::{BTreeSet, HashMap};

use super::engine::Engine;
use super::matcher::Mercy;
use super::meaning::{Choice, Meaning, Moment};
use super::words::{Sentence, plain_words};

/// The most places where a sentence may part. With more of them it is a story.
const MOST_BREAKS: usize = 4;

type Span = (usize, usize);

/// Where one part ends, and where the next begins behind the words between them.
#[derive(Debug, Clone, Copy)]
struct Break {
    end: usize,
    next: usize,
}

#[derive(Debug, Clone)]
enum Wish {
    /// Words that mean nothing: `thank you`.
    Nothing,
    Act {
        choice: Choice,
        certain: bool,
    },
}

/// Looks at each part once, however many ways there are to part a sentence.
pub(super) struct Parting<'a> {
    engine: &'a Engine,
    sentence: &'a Sentence<'a>,
    moment: &'a Moment<'a>,
    breaks: Vec<Break>,
    /// By where it is, where the part before it is if it has an `it`, and how much is forgiven.
    known: HashMap<(Span, Span, Mercy), Heard>,
}

#[derive(Debug, Clone)]
enum Heard {
    Wish(Wish),
    /// A question, or mere words: not what can be done beside something else.
    Other,
    Nothing,
}

impl Engine {
    pub(super) fn unsure(&self) -> Meaning {
        Meaning::Fail(self.text("unsure").to_owned())
    }

    /// None if there are too many.
    fn breaks(&self, sentence: &Sentence<'_>) -> Vec<Break> {
        let groups = &self.pack.groups;
        let joins = |at: usize| {
            let word = &sentence.tokens[at].text;
            groups.and.contains(word) || groups.then.contains(word)
        };
        let count = sentence.tokens.len();
        let (mut breaks, mut at) = (Vec::new(), 1);
        while at < count {
            let next = (at..count).find(|at| !joins(*at)).unwrap_or(count);
            if next < count && (next > at || sentence.is_parted(at)) {
                breaks.push(Break { end: at, next });
            }
            at = next.max(at + 1);
        }
        if breaks.len() > MOST_BREAKS {
            breaks.clear();
        }
        breaks
    }
}

impl<'a> Parting<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        sentence: &'a Sentence<'a>,
        moment: &'a Moment<'a>,
    ) -> Self {
        Self {
            engine,
            sentence,
            moment,
            breaks: engine.breaks(sentence),
            known: HashMap::new(),
        }
    }

    /// What a sentence means that has several wishes in it: as few as possible, and all of them understood.
    pub(super) fn meant(&mut self, mercy: Mercy) -> Result<Option<Meaning>, BTreeSet<usize>> {
        let mut ways: Vec<u32> = (1..1 << self.breaks.len()).collect();
        ways.sort_by_key(|way| way.count_ones());
        for ways in ways.chunk_by(|one, other| one.count_ones() == other.count_ones()) {
            let mut found: Option<Vec<Wish>> = None;
            for way in ways {
                let Some(wishes) = self.wishes(*way, mercy)? else {
                    continue;
                };
                match &found {
                    Some(other) if !is_same(other, &wishes) => {
                        return Ok(Some(self.engine.unsure()));
                    }
                    _ => found = Some(wishes),
                }
            }
            if let Some(meaning) = found.and_then(together) {
                return Ok(Some(meaning));
            }
        }
        Ok(None)
    }

    /// A sentence that is understood as a whole, but not for certain, and whose end is a wish of its own: `search for cats and
    /// turn on the lamp`.
    pub(super) fn is_two(&mut self) -> Result<bool, BTreeSet<usize>> {
        let count = self.sentence.tokens.len();
        for at in self.breaks.clone() {
            let end = self.alone((at.next, count), Mercy::None)?;
            if let Some(Wish::Act { certain: true, .. }) = end {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What is said where one side of a sentence is understood and the other is not.
    pub(super) fn half(&mut self) -> Result<Option<Meaning>, BTreeSet<usize>> {
        let count = self.sentence.tokens.len();
        let breaks = self.breaks.clone();
        let ends = breaks
            .iter()
            .rev()
            .map(|at| ((0, at.end), (at.next, count)));
        let begins = breaks.iter().map(|at| ((at.next, count), (0, at.end)));
        for (understood, rest) in ends.chain(begins) {
            if let Some(Wish::Act { .. }) = self.alone(understood, Mercy::Spelling)? {
                let written = |(from, to): Span| self.sentence.written(from, to);
                let words = [("wish", written(understood)), ("rest", written(rest))];
                return Ok(Some(Meaning::Fail(self.engine.filled("half", &words))));
            }
        }
        Ok(None)
    }

    /// The wishes between some of the breaks, a bit for each that is taken, if all of them are understood.
    fn wishes(&mut self, way: u32, mercy: Mercy) -> Result<Option<Vec<Wish>>, BTreeSet<usize>> {
        let count = self.sentence.tokens.len();
        let last = Break {
            end: count,
            next: count,
        };
        let taken = (0..self.breaks.len()).filter(|place| way >> place & 1 == 1);
        let taken: Vec<Break> = taken.map(|place| self.breaks[place]).collect();
        let mut wishes: Vec<Wish> = Vec::new();
        let (mut from, mut before) = (0, Span::default());
        for at in taken.into_iter().chain([last]) {
            let here = (from, at.end);
            let Some(wish) = self.wish(here, before, wishes.last(), mercy)? else {
                return Ok(None);
            };
            wishes.push(wish);
            (before, from) = (here, at.next);
        }
        Ok(Some(wishes))
    }

    fn alone(&mut self, span: Span, mercy: Mercy) -> Result<Option<Wish>, BTreeSet<usize>> {
        self.wish(span, Span::default(), None, mercy)
    }

    /// What some words mean after a part that means something else, which `it` may be about.
    fn wish(
        &mut self,
        span: Span,
        before: Span,
        meant: Option<&Wish>,
        most: Mercy,
    ) -> Result<Option<Wish>, BTreeSet<usize>> {
        let words = &self.sentence.tokens[span.0..span.1];
        let pronouns = &self.engine.pack.pronouns;
        let before = match words.iter().any(|word| pronouns.contains(&word.text)) {
            true => before,
            false => Span::default(),
        };
        for mercy in [Mercy::None, Mercy::Spelling, Mercy::Unknown] {
            if mercy > most {
                break;
            }
            let key = (span, before, mercy);
            if !self.known.contains_key(&key) {
                let heard = self.look(span, meant, mercy)?;
                self.known.insert(key, heard);
            }
            match &self.known[&key] {
                Heard::Wish(wish) => return Ok(Some(wish.clone())),
                Heard::Other => return Ok(None),
                Heard::Nothing => {}
            }
        }
        Ok(None)
    }

    fn look(
        &self,
        span: Span,
        meant: Option<&Wish>,
        mercy: Mercy,
    ) -> Result<Heard, BTreeSet<usize>> {
        let text = self.sentence.around(span.0, span.1);
        if self.engine.after_fillers(&plain_words(text)).is_empty() {
            return Ok(Heard::Wish(Wish::Nothing));
        }
        let Some(part) = Sentence::read(text, &self.engine.replace) else {
            return Ok(Heard::Nothing);
        };
        let last: Vec<_> = match meant {
            Some(Wish::Act { choice, .. }) => {
                choice.calls.iter().map(|call| call.slots.clone()).collect()
            }
            _ => self.moment.last.to_vec(),
        };
        let moment = Moment {
            last: &last,
            ..*self.moment
        };
        Ok(match self.engine.meant(&part, &moment, mercy)? {
            Some(Meaning::Act {
                choice, certain, ..
            }) => Heard::Wish(Wish::Act { choice, certain }),
            Some(_) => Heard::Other,
            None => Heard::Nothing,
        })
    }
}

fn together(wishes: Vec<Wish>) -> Option<Meaning> {
    let mut all_certain = true;
    let steps = wishes.into_iter().filter_map(|wish| match wish {
        Wish::Nothing => None,
        Wish::Act { choice, certain } => {
            all_certain &= certain;
            Some(choice)
        }
    });
    let mut steps: Vec<Choice> = steps.collect();
    if steps.is_empty() {
        return None;
    }
    let choice = steps.remove(0);
    Some(Meaning::Act {
        choice,
        then: steps,
        certain: all_certain,
    })
}

fn is_same(one: &[Wish], other: &[Wish]) -> bool {
    let calls = |wishes: &[Wish]| -> Vec<_> {
        let acts = wishes.iter().filter_map(|wish| match wish {
            Wish::Nothing => None,
            Wish::Act { choice, .. } => Some(choice),
        });
        let calls = acts.flat_map(|choice| &choice.calls);
        calls
            .map(|call| (call.tool.clone(), call.arguments.clone()))
            .collect()
    };
    calls(one) == calls(other)
}
