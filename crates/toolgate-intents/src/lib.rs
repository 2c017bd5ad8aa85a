//! Turns plain sentences into tool calls, and results into spoken answers, without a model.
//!
//! ```text
//!  a sentence + what was said before ──▶ SentenceInterpreter::interpret ──▶ Interpretation
//!                                                  │    calls, a question, an answer, a failure
//!  results of the calls ────────────▶ SentenceInterpreter::after_calls ──▶ the next calls, or words
//! ```
//!
//! This crate knows nothing of providers, wire formats or conversations. Whatever one answer must
//! remember for the next is a [`SentenceMemory`], which the caller stores with the answer.
//!
//! Start reading in `interpreter`. `words` splits a sentence, `template` and `engine` turn a
//! pack's sentences into `graph`s, `matcher` finds the ones that fit, `understanding`
//! decides what they mean, `live_lists` knows the tools and the names of things, and
//! `answer` puts results into words.

/// Extends collections of one value by those of another.
macro_rules! extend_all {
    ($to:ident, $from:ident: $($field:ident),+) => { $($to.$field.extend($from.$field);)+ };
}

mod answer;
mod dates;
mod engine;
mod examples;
mod fills;
mod graph;
mod groups;
mod interpreter;
mod items;
mod live_lists;
mod lookups;
mod matcher;
mod maths;
mod meaning;
mod memory;
mod name_index;
mod numbers;
mod omitted_name;
mod pack;
mod problems;
mod replies;
mod spelling;
mod splitter;
mod template;
#[cfg(test)]
mod tests;
mod understanding;
mod waiting;
mod words;

pub use interpreter::SentenceInterpreter;
pub use meaning::{Interpretation, SentenceCall};
pub use memory::{CompletedCalls, SentenceContext, SentenceMemory};
pub use pack::{Pack, PackError};
