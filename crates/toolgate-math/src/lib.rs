//! The expression language behind `math_eval`: mathjs' syntax and answers, but impossible
//! to hang or crash.
//!
//! text → `lexer` → `parser` → `tree` → `eval` → `value` → [`MathAnswer`]. Start reading in
//! `parser.rs`. `ops` holds the operators, `functions` one table per family, `number` and
//! `unit` the kinds of value, `format` their text. A [`Budget`] counts everything an
//! expression could use up.

mod answer;
mod budget;
mod error;
mod eval;
mod format;
mod functions;
mod lexer;
mod matrix;
mod name_map;
mod number;
mod ops;
mod parser;
mod prelude;
mod tree;
mod unit;
mod value;

pub use answer::MathAnswer;
pub use budget::Budget;
pub use error::MathError;

use budget::Meter;
use eval::Evaluator;

/// Parses and evaluates an expression.
///
/// Never panics, never hangs, and runs on a thread with 256 KiB of stack.
///
/// # Errors
/// Says what is wrong with the expression, or which limit of the budget it exceeds.
///
/// ```
/// let answer = toolgate_math::evaluate("2 inch to cm", &toolgate_math::Budget::default())?;
/// assert_eq!(answer.to_string(), "5.08 cm");
/// # Ok::<(), toolgate_math::MathError>(())
/// ```
pub fn evaluate(expression: &str, budget: &Budget) -> Result<MathAnswer, MathError> {
    let tree = parser::parse(expression, budget)?;
    let mut run = Evaluator::new(&tree, Meter::new(budget));
    let value = run.run()?;
    Ok(MathAnswer::new(value, run.system, *budget))
}

/// Yields every function: its name, its signature (`digits?` is optional, `...` repeats) and
/// one line of help.
pub fn functions() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    functions::all().map(|function| (function.name, function.signature, function.help))
}

/// Yields every constant: its name, its kind or value, and one line of help.
pub fn constants() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    functions::constants()
}

/// Yields every unit under each of its names: the name, the quantity, and `"prefixes"` or `""` for
/// whether prefixes such as `k` or `kilo` can precede it.
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
