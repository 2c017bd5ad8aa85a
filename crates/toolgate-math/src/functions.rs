//! The functions, one family per file. `functions/functions.tsv` has their signatures and help.

mod analytic;
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

use crate::name_map::NameMap;
use crate::prelude::*;

pub(crate) use combinatorics::factorial;
pub(crate) use matrices::range;
pub(crate) use units::convert;

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) signature: &'static str,
    pub(crate) help: &'static str,
    /// The smallest and the largest number of arguments.
    pub(crate) arity: (usize, usize),
    pub(crate) body: FunctionBody,
}

pub(crate) type ValueFunction = fn(&mut BudgetTracker, &Value) -> Result<Value>;
type ListFunction = fn(&mut Evaluator<'_>, &[Value]) -> Result<Value>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum FunctionBody {
    /// Takes one argument that is not a matrix.
    One(ValueFunction),
    /// Takes one argument. A matrix is processed cell by cell.
    Each(ValueFunction),
    Two(ops::ScalarFunction),
    /// Like `Two`, but evaluates the second argument only if needed.
    Lazy(ops::ScalarFunction),
    /// Takes any number of arguments, and may call functions that are passed to it.
    Many(ListFunction),
    /// Like `Many`, but the last argument may be an expression with a free variable,
    /// as in `map(list, x^2)`.
    WithExpression(ListFunction),
}

type FunctionRow = (&'static str, FunctionBody);

const fn one(name: &'static str, f: ValueFunction) -> FunctionRow {
    (name, FunctionBody::One(f))
}

const fn each(name: &'static str, f: ValueFunction) -> FunctionRow {
    (name, FunctionBody::Each(f))
}

const fn two(name: &'static str, f: ops::ScalarFunction) -> FunctionRow {
    (name, FunctionBody::Two(f))
}

const fn lazy(name: &'static str, f: ops::ScalarFunction) -> FunctionRow {
    (name, FunctionBody::Lazy(f))
}

const fn many(name: &'static str, f: ListFunction) -> FunctionRow {
    (name, FunctionBody::Many(f))
}

const fn with_expression(name: &'static str, f: ListFunction) -> FunctionRow {
    (name, FunctionBody::WithExpression(f))
}

fn parse_table(
    text: &'static str,
) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    text.lines().filter_map(|line| {
        let (name, rest) = line.split_once('\t')?;
        let (middle, help) = rest.split_once('\t')?;
        Some((name, middle, help))
    })
}

// Reads the arity from a signature: `digits?` is optional, `...` repeats.
fn parse_arity(signature: &str) -> (usize, usize) {
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
            return fail(format!(
                "Too few arguments in function {} (expected: {}({}), actual: {count})",
                self.name, self.name, self.signature
            ));
        }
        if count > most {
            return fail(format!(
                "Too many arguments in function {} (expected: {most}, actual: {count})",
                self.name
            ));
        }
        Ok(())
    }
}

const FAMILIES: &[&[FunctionRow]] = &[
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
    let texts: NameMap<_> = parse_table(include_str!("functions/functions.tsv"))
        .map(|(name, signature, help)| (name, (signature, help)))
        .collect();
    let rows = FAMILIES.iter().copied().flatten();
    rows.filter_map(|&(name, body)| {
        let &(signature, help) = texts.get(name)?;
        Some(Function {
            name,
            signature,
            help,
            arity: parse_arity(signature),
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

pub(crate) fn find_global(name: &str) -> Option<Value> {
    GLOBALS.get(name).cloned()
}

pub(crate) fn constants() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    constants::all()
}

/// The names to suggest for a mistyped one.
pub(crate) fn known_names() -> impl Iterator<Item = &'static str> {
    all()
        .map(|function| function.name)
        .chain(constants::all().map(|(name, ..)| name))
}

pub(crate) fn omission_reason(name: &str) -> Option<&'static str> {
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
