//! Turns plain sentences such as "turn on the kitchen light" into tool calls, and their results
//! into spoken answers, without a model.
//!
//! ```text
//!  a sentence and its context ──▶ SentenceInterpreter::interpret   ──▶ Interpretation:
//!                                                                     calls, a question,
//!  results of the calls       ──▶ SentenceInterpreter::after_calls ──▶ an answer or a failure
//! ```
//!
//! A [`SentenceInterpreter`] matches sentences against the templates of a language [`Pack`];
//! English is built in. This crate doesn't know about providers, wire formats or conversations.
//! What an answer has to remember for the next one is in a [`SentenceMemory`], which the caller
//! stores with the answer.
//!
//! To read the code, start in `interpreter`. `words` splits a sentence, `template` and `engine`
//! turn a pack's sentences into `graph`s, `matcher` finds the ones that fit, `understanding`
//! decides what they mean, `live_lists` knows the tools and the names of things, and `answer`
//! puts results into words.

/// Extends the named collections of one struct with those of another.
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
