//! Evaluates expressions with the syntax and answers of mathjs, for the tool `math_eval`. No
//! expression can make it hang or crash.
//!
//! ```text
//! expression ──▶ lexer ──▶ parser ──▶ tree ──▶ eval ──▶ value ──▶ MathAnswer
//! ```
//!
//! [`evaluate`] is the way in. A [`Budget`] limits the time, memory and stack that an expression
//! may use; a [`MathAnswer`] becomes text or JSON. [`functions()`], [`constants()`] and [`units()`]
//! list everything that an expression can name.
//!
//! To read the code, start in `parser.rs`. `ops` holds the operators, `functions` has one table per
//! family, `number` and `unit` define kinds of values, and `format` writes them as text.

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

use budget::BudgetTracker;
use eval::Evaluator;

/// Parses and evaluates an expression, in about the budget's time at most.
///
/// Never panics, never hangs, and runs on a thread with 256 KiB of stack.
///
/// # Errors
/// Fails if the expression has a syntax error, can't be computed, or exceeds a limit of the budget.
///
/// ```
/// let answer = toolgate_math::evaluate("2 inch to cm", &toolgate_math::Budget::default())?;
/// assert_eq!(answer.to_string(), "5.08 cm");
/// # Ok::<(), toolgate_math::MathError>(())
/// ```
pub fn evaluate(expression: &str, budget: &Budget) -> Result<MathAnswer, MathError> {
    let tree = parser::parse(expression, budget)?;
    let mut evaluator = Evaluator::new(&tree, BudgetTracker::new(budget));
    let value = evaluator.run()?;
    Ok(MathAnswer::new(value, evaluator.system, *budget))
}

/// Lists every function: its name, its parameters (`digits?` is optional, `...` repeats) and
/// one line of help.
pub fn functions() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    functions::all().map(|function| (function.name, function.signature, function.help))
}

/// Lists every constant: its name, its kind or value, and one line of help.
pub fn constants() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    functions::constants()
}

/// Lists every unit under each of its names: the name, the quantity it measures, and `"prefixes"`
/// if a prefix such as `k` or `kilo` can precede it, else `""`.
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
