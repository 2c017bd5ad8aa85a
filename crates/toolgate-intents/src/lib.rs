//! Which tool calls a plain sentence means, and what to say of their results, without a model.
//!
//! ```text
//!  a sentence + what was said before ──▶ SentenceInterpreter::interpret ──▶ Interpretation
//!                                                  │    calls, a question, an answer, a failure
//!  results of the calls ────────────▶ SentenceInterpreter::after_calls ──▶ the next calls, or words
//! ```
//!
//! This crate knows no provider, no wire and no conversation. What has to be remembered from one
//! answer to the next is a [`SentenceMemory`], which the caller keeps with the answer.
//!
//! Start reading in `interpreter`. `words` splits a sentence, `template` and `engine` make `graph`s
//! of a pack's sentences, `matcher` finds those that fit, `talk` says what that means, `live` knows
//! the tools and the names of things, `answer` puts results into words.

mod answer;
mod dates;
mod doubts;
mod engine;
mod examples;
mod fills;
mod graph;
mod groups;
mod interpreter;
mod items;
mod left_out;
mod lists;
mod live;
mod lookups;
mod matcher;
mod maths;
mod meaning;
mod memory;
mod numbers;
mod pack;
mod parts;
mod replies;
mod spelling;
mod talk;
mod template;
#[cfg(test)]
mod tests;
mod waiting;
mod words;

pub use interpreter::SentenceInterpreter;
pub use meaning::{Interpretation, SentenceCall};
pub use memory::{CompletedCalls, SentenceContext, SentenceMemory};
pub use pack::{Pack, PackError};
