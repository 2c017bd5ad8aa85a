//! Comparisons and logic under their names.

use super::Body::{Each, Lazy, Many, Two};
use super::Row;
use crate::ops;
use crate::value::Value;

pub(super) const TABLE: &[Row] = &[
    ("equal", Two(ops::equal)),
    ("unequal", Two(ops::unequal)),
    ("smaller", Two(ops::less)),
    ("larger", Two(ops::greater)),
    ("smallerEq", Two(ops::less_equal)),
    ("largerEq", Two(ops::greater_equal)),
    ("compare", Two(ops::compare)),
    (
        "compareNatural",
        Two(|meter, a, b| Ok(f64::from(ops::natural_order(meter, a, b)? as i8).into())),
    ),
    (
        "compareText",
        Two(|meter, a, b| {
            ops::broadcast(meter, a, b, |_, a, b| {
                let order = a
                    .as_text("compareText")?
                    .as_ref()
                    .cmp(b.as_text("compareText")?.as_ref());
                Ok(f64::from(order as i8).into())
            })
        }),
    ),
    (
        "equalText",
        Two(|meter, a, b| {
            ops::broadcast(meter, a, b, |_, a, b| {
                Ok((a.as_text("equalText")? == b.as_text("equalText")?).into())
            })
        }),
    ),
    (
        "deepEqual",
        Two(|meter, a, b| Ok(ops::same(meter, a, b)?.into())),
    ),
    ("not", Each(ops::not)),
    ("and", Lazy(ops::and)),
    ("or", Lazy(ops::or)),
    ("xor", Two(ops::xor)),
    (
        "nullish",
        Two(|_, a, b| {
            Ok(if matches!(a, Value::Null | Value::Undefined) {
                b.clone()
            } else {
                a.clone()
            })
        }),
    ),
    ("clone", Many(|_, args| Ok(args[0].clone()))),
];
