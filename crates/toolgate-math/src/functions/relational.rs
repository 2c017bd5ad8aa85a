//! Comparisons and logical operators as named functions.

use super::{FunctionRow, each, lazy, many, two};
use crate::prelude::*;

pub(super) const TABLE: &[FunctionRow] = &[
    two("equal", ops::equal),
    two("unequal", ops::unequal),
    two("smaller", ops::less),
    two("larger", ops::greater),
    two("smallerEq", ops::less_equal),
    two("largerEq", ops::greater_equal),
    two("compare", ops::compare),
    two("compareNatural", |budget, a, b| {
        Ok(f64::from(ops::natural_order(budget, a, b)? as i8).into())
    }),
    two("compareText", |budget, a, b| {
        ops::broadcast(budget, a, b, |_, a, b| {
            let order = a
                .as_text("compareText")?
                .as_ref()
                .cmp(b.as_text("compareText")?.as_ref());
            Ok(f64::from(order as i8).into())
        })
    }),
    two("equalText", |budget, a, b| {
        ops::broadcast(budget, a, b, |_, a, b| {
            Ok((a.as_text("equalText")? == b.as_text("equalText")?).into())
        })
    }),
    two("deepEqual", |budget, a, b| {
        Ok(ops::deep_equal(budget, a, b)?.into())
    }),
    each("not", ops::not),
    lazy("and", ops::and),
    lazy("or", ops::or),
    two("xor", ops::xor),
    two("nullish", |_, a, b| {
        Ok(if matches!(a, Value::Null | Value::Undefined) {
            b.clone()
        } else {
            a.clone()
        })
    }),
    many("clone", |_, args| Ok(args[0].clone())),
];
