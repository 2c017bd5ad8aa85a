//! The functions, one family per file; their signatures and lines of help are in `functions/functions.tsv`.

mod arithmetic;
mod combinatorics;
mod constants;
mod construct;
mod geometry;
mod linear;
mod lists;
mod matrices;
mod numbers;
mod powers;
mod ranks;
mod relational;
mod rounding;
mod sets;
mod shapes;
mod statistics;
mod texts;
mod trigonometry;
mod types;
mod units;

use std::sync::LazyLock;

use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::eval::Run;
use crate::hash::NameMap;
use crate::value::Value;

pub(crate) use combinatorics::factorial;
pub(crate) use matrices::range;
pub(crate) use units::convert;

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) signature: &'static str,
    pub(crate) help: &'static str,
    /// The fewest and the most arguments it takes.
    pub(crate) arity: (usize, usize),
    pub(crate) body: Body,
}

#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// One scalar.
    One(fn(&mut Meter, &Value) -> Result<Value>),
    /// One scalar, or each cell of a matrix.
    Each(fn(&mut Meter, &Value) -> Result<Value>),
    /// Two values, matrices included.
    Two(fn(&mut Meter, &Value, &Value) -> Result<Value>),
    /// Like `Two`, but the second argument is only computed if it matters.
    Lazy(fn(&mut Meter, &Value, &Value) -> Result<Value>),
    Many(fn(&mut Run<'_>, &[Value]) -> Result<Value>),
    /// Like `Many`, but the last argument may be an expression with a free variable: `map(list, x^2)`.
    WithExpression(fn(&mut Run<'_>, &[Value]) -> Result<Value>),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Body")
    }
}

/// A function's name and code; `functions.tsv` has its signature and its line of help.
type Row = (&'static str, Body);

/// The rows of a file with three columns.
fn table(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    text.lines().filter_map(|line| {
        let (name, rest) = line.split_once('\t')?;
        let (middle, help) = rest.split_once('\t')?;
        Some((name, middle, help))
    })
}

/// Reads the arity out of a signature: `x` is needed, `digits?` is not, `...` repeats.
fn arity(signature: &str) -> (usize, usize) {
    let parameters = signature.split(", ").filter(|name| !name.is_empty());
    let (optional, needed): (Vec<&str>, Vec<&str>) =
        parameters.partition(|name| name.ends_with('?') || *name == "...");
    let most = if optional.contains(&"...") {
        usize::MAX
    } else {
        needed.len() + optional.len()
    };
    (needed.len(), most)
}

impl Function {
    pub(crate) fn check(&self, count: usize) -> Result<()> {
        let (least, most) = self.arity;
        if count < least {
            return Err(Error::new(format!(
                "Too few arguments in function {} (expected: {}({}), actual: {count})",
                self.name, self.name, self.signature
            )));
        }
        if count > most {
            return Err(Error::new(format!(
                "Too many arguments in function {} (expected: {most}, actual: {count})",
                self.name
            )));
        }
        Ok(())
    }
}

const FAMILIES: &[&[Row]] = &[
    arithmetic::TABLE,
    powers::TABLE,
    numbers::TABLE,
    rounding::TABLE,
    trigonometry::TABLE,
    combinatorics::TABLE,
    relational::TABLE,
    statistics::TABLE,
    ranks::TABLE,
    matrices::TABLE,
    shapes::TABLE,
    lists::TABLE,
    linear::TABLE,
    geometry::TABLE,
    sets::TABLE,
    construct::TABLE,
    units::TABLE,
    texts::TABLE,
    types::TABLE,
];

static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let texts: NameMap<_> = table(include_str!("functions/functions.tsv"))
        .map(|(name, signature, help)| (name, (signature, help)))
        .collect();
    let rows = FAMILIES.iter().copied().flatten();
    rows.filter_map(|&(name, body)| {
        let &(signature, help) = texts.get(name)?;
        Some(Function {
            name,
            signature,
            help,
            arity: arity(signature),
            body,
        })
    })
    .collect()
});

static GLOBALS: LazyLock<NameMap<Value>> = LazyLock::new(|| {
    let functions = all().map(|function| (function.name, Value::Builtin(function)));
    functions.chain(constants::values()).collect()
});

pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.iter()
}

pub(crate) fn global(name: &str) -> Option<Value> {
    GLOBALS.get(name).cloned()
}

/// Every constant: name, value in words, help.
pub(crate) fn constants() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    constants::all()
}

/// Names that a slip of the finger may have meant.
pub(crate) fn known_names() -> impl Iterator<Item = &'static str> {
    all()
        .map(|function| function.name)
        .chain(constants::all().map(|(name, ..)| name))
}

/// Why a function of mathjs is not here.
pub(crate) fn left_out(name: &str) -> Option<&'static str> {
    Some(match name {
        "random" | "randomInt" | "pickRandom" => {
            "there is no randomness here; the same expression always gives the same answer"
        }
        "import" | "createUnit" | "config" => "an expression cannot change the language",
        "evaluate" | "parse" | "compile" | "parser" | "chain" | "typed" | "help" | "simplify"
        | "derivative" | "rationalize" => {
            "expressions about expressions are not supported; write the expression itself"
        }
        _ => return None,
    })
}
