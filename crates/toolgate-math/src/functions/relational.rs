//! Comparisons and logic under their names.

use super::{Function, each, lazy, many, two};
use crate::budget::Meter;
use crate::error::Result;
use crate::ops;
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    two(
        "equal",
        "x, y",
        "Whether numbers are equal up to rounding errors; the operator ==",
        ops::equal,
    ),
    two("unequal", "x, y", "The operator !=", ops::unequal),
    two("smaller", "x, y", "The operator <", ops::less),
    two("larger", "x, y", "The operator >", ops::greater),
    two("smallerEq", "x, y", "The operator <=", ops::less_equal),
    two("largerEq", "x, y", "The operator >=", ops::greater_equal),
    two("compare", "x, y", "-1, 0 or 1", ops::compare),
    two(
        "compareNatural",
        "x, y",
        "-1, 0 or 1 for values of any type",
        |meter, a, b| Ok(f64::from(ops::natural_order(meter, a, b)? as i8).into()),
    ),
    two(
        "compareText",
        "x, y",
        "-1, 0 or 1 for texts, letter by letter",
        |meter, a, b| {
            ops::broadcast(meter, a, b, |_, a, b| {
                let order = a
                    .as_text("compareText")?
                    .as_ref()
                    .cmp(b.as_text("compareText")?.as_ref());
                Ok(f64::from(order as i8).into())
            })
        },
    ),
    two(
        "equalText",
        "x, y",
        "Whether texts are equal",
        |meter, a, b| {
            ops::broadcast(meter, a, b, |_, a, b| {
                Ok((a.as_text("equalText")? == b.as_text("equalText")?).into())
            })
        },
    ),
    two(
        "deepEqual",
        "x, y",
        "Whether values are equal in every cell",
        |meter, a, b| Ok(ops::same(meter, a, b)?.into()),
    ),
    each("not", "x", "The operator not", ops::not),
    lazy("and", "x, y", "The operator and", and),
    lazy("or", "x, y", "The operator or", or),
    two("xor", "x, y", "The operator xor", ops::xor),
    two(
        "nullish",
        "x, y",
        "x, or y if x is null or undefined; the operator ??",
        |_, a, b| {
            Ok(if matches!(a, Value::Null | Value::Undefined) {
                b.clone()
            } else {
                a.clone()
            })
        },
    ),
    many("clone", "x", "The value itself", |_, args| {
        Ok(args[0].clone())
    }),
];

fn and(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    ops::broadcast(meter, a, b, |_, a, b| {
        let (a, b) = ops::truths("and", a, b)?;
        Ok((a && b).into())
    })
}

fn or(meter: &mut Meter, a: &Value, b: &Value) -> Result<Value> {
    ops::broadcast(meter, a, b, |_, a, b| {
        let (a, b) = ops::truths("or", a, b)?;
        Ok((a || b).into())
    })
}
