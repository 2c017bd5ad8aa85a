//! Applies the operators of a tree to values.

use super::Evaluator;
use crate::functions;
use crate::prelude::*;
use crate::tree::{BinaryOperator, NodeId, NodeList, UnaryOperator};

impl Evaluator<'_> {
    pub(super) fn apply_unary(&mut self, operator: UnaryOperator, value: &Value) -> Result<Value> {
        let budget = &mut self.budget;
        match operator {
            UnaryOperator::Minus => ops::negate(budget, value),
            UnaryOperator::Plus => ops::plus(budget, value),
            UnaryOperator::BitNot => ops::bit_not(budget, value),
            UnaryOperator::Not => ops::not(budget, value),
            UnaryOperator::Factorial => functions::factorial(budget, value),
            UnaryOperator::Transpose => ops::transpose(budget, value, true),
            UnaryOperator::Percent => ops::divide(budget, value, &Value::Number(100.0)),
        }
    }

    pub(super) fn eval_and(&mut self, left: &Value, right: NodeId) -> Result<Value> {
        if !matches!(left, Value::Matrix(_)) && !ops::truths("and", left, &Value::Bool(true))?.0 {
            return Ok(Value::Bool(false));
        }
        let right = self.eval(right)?;
        if let (Value::Matrix(matrix), false) = (left, matches!(right, Value::Matrix(_)))
            && (matches!(right, Value::Null) || !ops::truth("and", &right)?)
        {
            // Zeros instead of booleans, as in mathjs.
            let size = matrix.size.clone();
            let zeros = Matrix::filled(&mut self.budget, size, &Value::Number(0.0))?;
            return Ok(Value::from(zeros));
        }
        ops::and(&mut self.budget, left, &right)
    }

    pub(super) fn eval_or(&mut self, left: &Value, right: NodeId) -> Result<Value> {
        if !matches!(left, Value::Matrix(_)) && ops::truths("or", left, &Value::Bool(false))?.0 {
            return Ok(Value::Bool(true));
        }
        let right = self.eval(right)?;
        ops::or(&mut self.budget, left, &right)
    }

    pub(super) fn eval_chain(&mut self, list: NodeList, operators: u32) -> Result<Value> {
        let tree = self.tree;
        let operands = tree.list(list);
        let mut left = self.eval(operands[0])?;
        for (i, &operand) in operands[1..].iter().enumerate() {
            let right = self.eval(operand)?;
            let held = apply_binary(
                &mut self.budget,
                tree.operators[operators as usize + i],
                &left,
                &right,
            )?;
            // As in mathjs, a matrix always counts as true.
            if !matches!(held, Value::Matrix(_)) && !ops::truth("relational", &held)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    pub(super) fn eval_condition(&mut self, test: NodeId) -> Result<bool> {
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
                return fail(format!(
                    "Unsupported type of condition \"{}\"",
                    other.type_name()
                ));
            }
        })
    }
}

pub(super) fn apply_binary(
    budget: &mut BudgetTracker,
    operator: BinaryOperator,
    a: &Value,
    b: &Value,
) -> Result<Value> {
    match operator {
        BinaryOperator::Add => ops::add(budget, a, b),
        BinaryOperator::Subtract => ops::subtract(budget, a, b),
        BinaryOperator::Multiply => ops::multiply(budget, a, b),
        BinaryOperator::Divide => ops::divide(budget, a, b),
        BinaryOperator::DotMultiply => ops::dot_multiply(budget, a, b),
        BinaryOperator::DotDivide => ops::dot_divide(budget, a, b),
        BinaryOperator::Mod => ops::modulo(budget, a, b),
        BinaryOperator::Power => ops::power(budget, a, b),
        BinaryOperator::DotPower => ops::dot_power(budget, a, b),
        BinaryOperator::BitAnd => ops::bit_and(budget, a, b),
        BinaryOperator::BitOr => ops::bit_or(budget, a, b),
        BinaryOperator::BitXor => ops::bit_xor(budget, a, b),
        BinaryOperator::ShiftLeft => ops::shift_left(budget, a, b),
        BinaryOperator::ShiftRight => ops::shift_right(budget, a, b),
        BinaryOperator::ShiftRightLogical => ops::shift_right_logical(budget, a, b),
        BinaryOperator::Equal => ops::equal(budget, a, b),
        BinaryOperator::Unequal => ops::unequal(budget, a, b),
        BinaryOperator::Less => ops::less(budget, a, b),
        BinaryOperator::Greater => ops::greater(budget, a, b),
        BinaryOperator::LessEqual => ops::less_equal(budget, a, b),
        BinaryOperator::GreaterEqual => ops::greater_equal(budget, a, b),
        BinaryOperator::Xor => ops::xor(budget, a, b),
        BinaryOperator::Convert => functions::convert(budget, a, b),
        BinaryOperator::AddPercent => {
            let share = ops::multiply(budget, a, b)?;
            ops::add(budget, a, &share)
        }
        BinaryOperator::SubtractPercent => {
            let share = ops::multiply(budget, a, b)?;
            ops::subtract(budget, a, &share)
        }
        BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Nullish => {
            Err(type_error("operator", a))
        }
    }
}
