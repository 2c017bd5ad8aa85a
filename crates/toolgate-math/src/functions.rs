//! The functions, one family per file, each with its signature and a line of help in the family's table.

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
    /// Its last argument may be an expression with a free variable: `map(list, x^2)`.
    pub(crate) takes_expression: bool,
    /// Its second argument is only computed if it matters.
    pub(crate) lazy: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// One scalar.
    One(fn(&mut Meter, &Value) -> Result<Value>),
    /// One scalar, or each cell of a matrix.
    Each(fn(&mut Meter, &Value) -> Result<Value>),
    /// Two values, matrices included.
    Two(fn(&mut Meter, &Value, &Value) -> Result<Value>),
    /// Anything else.
    Many(fn(&mut Run<'_>, &[Value]) -> Result<Value>),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Body")
    }
}

/// Reads the arity out of a signature: `x` is needed, `digits?` is not, `...` repeats.
const fn arity(signature: &str) -> (usize, usize) {
    let text = signature.as_bytes();
    if text.is_empty() {
        return (0, 0);
    }
    let (mut all, mut optional, mut endless, mut at) = (1, 0, false, 0);
    while at < text.len() {
        match text[at] {
            b',' => all += 1,
            b'?' => optional += 1,
            b'.' => endless = true,
            _ => {}
        }
        at += 1;
    }
    // `x, ...` counts the dots as one more that may be missing.
    let least = if endless {
        all - optional - 1
    } else {
        all - optional
    };
    (least, if endless { usize::MAX } else { all })
}

const fn entry(
    name: &'static str,
    signature: &'static str,
    help: &'static str,
    body: Body,
) -> Function {
    Function {
        name,
        signature,
        help,
        arity: arity(signature),
        body,
        takes_expression: false,
        lazy: false,
    }
}

const fn one(
    name: &'static str,
    signature: &'static str,
    help: &'static str,
    f: fn(&mut Meter, &Value) -> Result<Value>,
) -> Function {
    entry(name, signature, help, Body::One(f))
}

const fn each(
    name: &'static str,
    signature: &'static str,
    help: &'static str,
    f: fn(&mut Meter, &Value) -> Result<Value>,
) -> Function {
    entry(name, signature, help, Body::Each(f))
}

const fn two(
    name: &'static str,
    signature: &'static str,
    help: &'static str,
    f: fn(&mut Meter, &Value, &Value) -> Result<Value>,
) -> Function {
    entry(name, signature, help, Body::Two(f))
}

const fn many(
    name: &'static str,
    signature: &'static str,
    help: &'static str,
    f: fn(&mut Run<'_>, &[Value]) -> Result<Value>,
) -> Function {
    entry(name, signature, help, Body::Many(f))
}

/// Like [`many`], with an expression as a possible last argument.
const fn with_expression(
    name: &'static str,
    signature: &'static str,
    help: &'static str,
    f: fn(&mut Run<'_>, &[Value]) -> Result<Value>,
) -> Function {
    let mut function = entry(name, signature, help, Body::Many(f));
    function.takes_expression = true;
    function
}

/// Like [`two`], with a second argument that may not be needed.
const fn lazy(
    name: &'static str,
    signature: &'static str,
    help: &'static str,
    f: fn(&mut Meter, &Value, &Value) -> Result<Value>,
) -> Function {
    let mut function = entry(name, signature, help, Body::Two(f));
    function.lazy = true;
    function
}

impl Function {
    /// Fails if the function does not take `count` arguments.
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

const FAMILIES: &[&[Function]] = &[
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

/// Functions and constants by name.
static GLOBALS: LazyLock<NameMap<Value>> = LazyLock::new(|| {
    let functions = all().map(|function| (function.name, Value::Builtin(function)));
    functions.chain(constants::values()).collect()
});

/// Every function, in the order of the tables.
pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    FAMILIES.iter().copied().flatten()
}

/// The function or constant with this name.
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
