//! The expression language behind `math_eval`: the syntax and the answers people know from mathjs, impossible to hang or crash.
//!
//! text → `lexer` → `parser` → `tree` → `eval` → `value` → [`Answer`]; start reading in `parser.rs`.
//! `ops` holds the operators, `functions` one table per family, `number` and `unit` the kinds of value, `format` their text.
//! Everything an expression could use up is counted by a [`Budget`].

mod answer;
mod budget;
mod error;
mod eval;
mod format;
mod functions;
mod hash;
mod lexer;
mod matrix;
mod number;
mod ops;
mod parser;
mod tree;
mod unit;
mod value;

pub use answer::Answer;
pub use budget::Budget;
pub use error::Error;

use budget::Meter;
use eval::Run;

/// Parses and evaluates an expression.
///
/// Never panics, never hangs, and needs no more stack than a thread with 256 KiB has.
///
/// # Errors
/// A sentence that says what is wrong with the expression, or which limit of the budget it exceeds.
///
/// ```
/// let answer = toolgate_math::evaluate("2 inch to cm", &toolgate_math::Budget::default())?;
/// assert_eq!(answer.to_string(), "5.08 cm");
/// # Ok::<(), toolgate_math::Error>(())
/// ```
pub fn evaluate(expression: &str, budget: &Budget) -> Result<Answer, Error> {
    let tree = parser::parse(expression, budget)?;
    let mut run = Run::new(&tree, Meter::new(budget));
    let value = run.run()?;
    Ok(Answer::new(value, run.system, *budget))
}

/// Every function: name, signature (`digits?` may be missing, `...` repeats), one line of help.
///
/// ```
/// let (_, signature, help) = toolgate_math::functions()
///     .find(|(name, ..)| *name == "combinations")
///     .expect("it is there");
/// assert_eq!((signature, help), ("n, k", "Ways to choose k out of n"));
/// ```
pub fn functions() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    functions::all().map(|function| (function.name, function.signature, function.help))
}

/// Every constant: name, kind or value, one line of help.
///
/// ```
/// assert!(toolgate_math::constants().any(|(name, ..)| name == "speedOfLight"));
/// ```
pub fn constants() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    functions::constants()
}

/// Every unit under each of its names: name, quantity, and whether prefixes such as `k` or `kilo` go in front (`"prefixes"` or `""`).
///
/// ```
/// let inch = toolgate_math::units().find(|(name, ..)| *name == "inch");
/// assert_eq!(inch, Some(("inch", "length", "")));
/// ```
pub fn units() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    unit::table::all().map(|unit| {
        (
            unit.name,
            unit.base.name,
            if unit.prefixes.len() > 1 {
                "prefixes"
            } else {
                ""
            },
        )
    })
}

#[cfg(test)]
mod tests;
