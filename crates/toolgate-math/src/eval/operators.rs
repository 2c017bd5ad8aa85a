//! The operators of a tree, applied to values.

use super::Run;
use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::functions;
use crate::matrix::Matrix;
use crate::ops;
use crate::tree::{Binary, List, NodeId, Unary};
use crate::value::{Value, type_error};

impl Run<'_> {
    pub(super) fn unary(&mut self, operator: Unary, value: &Value) -> Result<Value> {
        let meter = &mut self.meter;
        match operator {
            Unary::Minus => ops::negate(meter, value),
            Unary::Plus => ops::plus(meter, value),
            Unary::BitNot => ops::bit_not(meter, value),
            Unary::Not => ops::not(meter, value),
            Unary::Factorial => functions::factorial(meter, value),
            Unary::Transpose => ops::transpose(meter, value, true),
            Unary::Percent => ops::divide(meter, value, &Value::Number(100.0)),
        }
    }

    pub(super) fn and(&mut self, left: &Value, right: NodeId) -> Result<Value> {
        if !matches!(left, Value::Matrix(_)) && !ops::truths("and", left, &Value::Bool(true))?.0 {
            return Ok(Value::Bool(false));
        }
        let right = self.eval(right)?;
        if let (Value::Matrix(matrix), false) = (left, matches!(right, Value::Matrix(_)))
            && (matches!(right, Value::Null) || !ops::truth("and", &right)?)
        {
            // Zeros instead of truths, as in mathjs.
            let size = matrix.size.clone();
            let zeros = Matrix::filled(&mut self.meter, size, &Value::Number(0.0))?;
            return Ok(Value::matrix(zeros));
        }
        ops::and(&mut self.meter, left, &right)
    }

    pub(super) fn or(&mut self, left: &Value, right: NodeId) -> Result<Value> {
        if !matches!(left, Value::Matrix(_)) && ops::truths("or", left, &Value::Bool(false))?.0 {
            return Ok(Value::Bool(true));
        }
        let right = self.eval(right)?;
        ops::or(&mut self.meter, left, &right)
    }

    pub(super) fn chain(&mut self, list: List, operators: u32) -> Result<Value> {
        let tree = self.tree;
        let operands = tree.list(list);
        let mut left = self.eval(operands[0])?;
        for (i, &operand) in operands[1..].iter().enumerate() {
            let right = self.eval(operand)?;
            let held = binary(
                &mut self.meter,
                tree.operators[operators as usize + i],
                &left,
                &right,
            )?;
            // A matrix of truths holds, whatever is in it.
            if !matches!(held, Value::Matrix(_)) && !ops::truth("relational", &held)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    pub(super) fn test(&mut self, test: NodeId) -> Result<bool> {
        Ok(match self.eval(test)? {
            Value::Text(text) => !text.is_empty(),
            Value::Null | Value::Undefined => false,
            Value::Complex(value) => value.re != 0.0 || value.im != 0.0,
            Value::Unit(unit) => unit
                .value
                .as_ref()
                .is_some_and(|value| !ops::is_zero(value)),
            test @ (Value::Bool(_) | Value::Number(_) | Value::Big(_)) => {
                ops::truth("conditional", &test)?
            }
            other => {
                return Err(Error::new(format!(
                    "Unsupported type of condition \"{}\"",
                    other.type_name()
                )));
            }
        })
    }
}

pub(super) fn binary(meter: &mut Meter, operator: Binary, a: &Value, b: &Value) -> Result<Value> {
    match operator {
        Binary::Add => ops::add(meter, a, b),
        Binary::Subtract => ops::subtract(meter, a, b),
        Binary::Multiply => ops::multiply(meter, a, b),
        Binary::Divide => ops::divide(meter, a, b),
        Binary::DotMultiply => ops::dot_multiply(meter, a, b),
        Binary::DotDivide => ops::dot_divide(meter, a, b),
        Binary::Mod => ops::modulo(meter, a, b),
        Binary::Power => ops::power(meter, a, b),
        Binary::DotPower => ops::dot_power(meter, a, b),
        Binary::BitAnd => ops::bit_and(meter, a, b),
        Binary::BitOr => ops::bit_or(meter, a, b),
        Binary::BitXor => ops::bit_xor(meter, a, b),
        Binary::ShiftLeft => ops::shift_left(meter, a, b),
        Binary::ShiftRight => ops::shift_right(meter, a, b),
        Binary::ShiftRightLogical => ops::shift_right_logical(meter, a, b),
        Binary::Equal => ops::equal(meter, a, b),
        Binary::Unequal => ops::unequal(meter, a, b),
        Binary::Less => ops::less(meter, a, b),
        Binary::Greater => ops::greater(meter, a, b),
        Binary::LessEqual => ops::less_equal(meter, a, b),
        Binary::GreaterEqual => ops::greater_equal(meter, a, b),
        Binary::Xor => ops::xor(meter, a, b),
        Binary::Convert => functions::convert(meter, a, b),
        Binary::AddPercent => {
            let share = ops::multiply(meter, a, b)?;
            ops::add(meter, a, &share)
        }
        Binary::SubtractPercent => {
            let share = ops::multiply(meter, a, b)?;
            ops::subtract(meter, a, &share)
        }
        Binary::And | Binary::Or | Binary::Nullish => Err(type_error("operator", a)),
    }
}
