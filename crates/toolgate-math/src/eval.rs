//! Walks the tree and computes.
//!
//! Operators that lean left (`1 + 1 + …`, `a[1][2]…`) are walked in a loop over [`Run::spine`]; only what the parser already
//! counted as a level of nesting, and calls, recurse.

mod call;
mod index;
mod spine;

pub(crate) use index::{pick, read_pick, replace};

use std::sync::Arc;

use crate::budget::Meter;
use crate::error::Result;
use crate::functions;
use crate::matrix::Matrix;
use crate::ops;
use crate::tree::{Binary, List, Name, Node, NodeId, Tree, Unary};
use crate::unit::{self, System, Unit};
use crate::value::{Closure, Object, Value, type_error};
use spine::Spine;

/// One evaluation.
pub(crate) struct Run<'a> {
    tree: &'a Tree<'a>,
    pub(crate) meter: Meter,
    /// The units the expression has named.
    pub(crate) system: System,
    names: Vec<Slot>,
    /// Parameters of the running calls; those of the innermost one start at `frame`.
    locals: Vec<(Name, Value)>,
    frame: usize,
    /// Nodes whose left side is being computed.
    spine: Spine,
    /// What is being indexed, and in which dimension: the meaning of `end`.
    ends: Vec<(Value, usize)>,
}

/// What a name stands for.
#[derive(Clone, Default)]
struct Slot {
    variable: Option<Value>,
    /// A function, constant or unit, once it was looked up.
    global: Option<Value>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(tree: &'a Tree<'a>, meter: Meter) -> Self {
        Self {
            tree,
            meter,
            system: System::default(),
            names: vec![Slot::default(); tree.names.len()],
            locals: Vec::new(),
            frame: 0,
            spine: Spine::default(),
            ends: Vec::new(),
        }
    }

    /// The value of the whole expression.
    pub(crate) fn run(&mut self) -> Result<Value> {
        match self.tree.node(self.tree.root) {
            Node::Block(list) => self.block(list),
            _ => self.eval(self.tree.root),
        }
    }

    fn block(&mut self, list: List) -> Result<Value> {
        let tree = self.tree;
        let mut shown = Vec::new();
        for &statement in tree.list(list) {
            match tree.node(statement) {
                Node::Hidden(inner) => {
                    self.eval(inner)?;
                }
                _ => shown.push(self.eval(statement)?),
            }
        }
        Ok(Value::Results(Arc::new(shown)))
    }

    /// The value of a node.
    pub(crate) fn eval(&mut self, node: NodeId) -> Result<Value> {
        self.meter.enter()?;
        let mark = self.spine.len();
        let mut at = node;
        loop {
            match self.tree.node(at) {
                Node::Group(inner) | Node::Hidden(inner) => at = inner,
                Node::Unary(_, left)
                | Node::Binary(_, left, _)
                | Node::Index { object: left, .. }
                | Node::Property { object: left, .. } => {
                    self.spine.push(at);
                    at = left;
                }
                Node::Call(function, _) if !matches!(self.tree.node(function), Node::Symbol(_)) => {
                    self.spine.push(at);
                    at = function;
                }
                // The chosen branch takes the place of the condition: no level of its own.
                Node::Conditional(test, yes, no) => at = if self.test(test)? { yes } else { no },
                _ => break,
            }
        }
        let mut value = self.leaf(at)?;
        while self.spine.len() > mark
            && let Some(above) = self.spine.pop()
        {
            self.meter.step(1)?;
            value = self.apply(above, value)?;
        }
        // Whatever an expression builds passes here, so nothing nests deeper than it can be written and dropped.
        self.meter.nested(value.depth())?;
        self.meter.leave();
        Ok(value)
    }

    /// A node without a left side.
    fn leaf(&mut self, node: NodeId) -> Result<Value> {
        match self.tree.node(node) {
            Node::Number(value) => Ok(Value::Number(value)),
            Node::Text(text) => Ok(Value::Text(self.tree.texts[text as usize].clone())),
            Node::True => Ok(Value::Bool(true)),
            Node::False => Ok(Value::Bool(false)),
            Node::Null => Ok(Value::Null),
            Node::Symbol(name) => self.symbol(name),
            Node::Call(function, arguments) => self.call_by_name(function, arguments),
            Node::Chain { list, operators } => self.chain(list, operators),
            Node::Range { start, step, end } => self.range(start, step, end),
            Node::Array(list) => self.array(list),
            Node::Object { keys, list } => self.object(keys, list),
            Node::Assign(name, value) => {
                let value = self.eval(value)?;
                self.names[name as usize].variable = Some(value.clone());
                Ok(value)
            }
            Node::AssignAt(place, value) => self.assign_at(place, value),
            Node::Function(definition) => self.define(definition),
            Node::Block(list) => self.block(list),
            _ => Ok(Value::Undefined),
        }
    }

    /// A node whose left side is `left`.
    fn apply(&mut self, node: NodeId, left: Value) -> Result<Value> {
        match self.tree.node(node) {
            Node::Unary(operator, _) => self.unary(operator, &left),
            Node::Binary(Binary::And, _, right) => self.and(&left, right),
            Node::Binary(Binary::Or, _, right) => self.or(&left, right),
            Node::Binary(Binary::Nullish, _, right) => match left {
                Value::Null | Value::Undefined => self.eval(right),
                left => Ok(left),
            },
            // `true | x` is decided by its left side, as in mathjs.
            Node::Binary(Binary::BitOr, ..) if matches!(left, Value::Bool(true)) => {
                Ok(Value::Number(1.0))
            }
            Node::Binary(operator, _, right) => {
                let right = match self.tree.node(right) {
                    Node::Number(value) => Value::Number(value),
                    _ => self.eval(right)?,
                };
                binary(&mut self.meter, operator, &left, &right)
            }
            Node::Index { list, optional, .. } => match left {
                Value::Null | Value::Undefined if optional => Ok(Value::Undefined),
                left => self.index(left, list),
            },
            Node::Property { key, optional, .. } => match left {
                Value::Null | Value::Undefined if optional => Ok(Value::Undefined),
                left => self.property(&left, key),
            },
            Node::Call(_, arguments) => {
                let arguments = self.arguments(arguments)?;
                self.call(&left, &arguments)
            }
            _ => Ok(left),
        }
    }

    fn unary(&mut self, operator: Unary, value: &Value) -> Result<Value> {
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

    fn and(&mut self, left: &Value, right: NodeId) -> Result<Value> {
        if !matches!(left, Value::Matrix(_)) && !ops::truths("and", left, &Value::Bool(true))?.0 {
            return Ok(Value::Bool(false));
        }
        let right = self.eval(right)?;
        ops::broadcast(&mut self.meter, left, &right, |_, a, b| {
            let (a, b) = ops::truths("and", a, b)?;
            Ok((a && b).into())
        })
    }

    fn or(&mut self, left: &Value, right: NodeId) -> Result<Value> {
        if !matches!(left, Value::Matrix(_)) && ops::truths("or", left, &Value::Bool(false))?.0 {
            return Ok(Value::Bool(true));
        }
        let right = self.eval(right)?;
        ops::broadcast(&mut self.meter, left, &right, |_, a, b| {
            let (a, b) = ops::truths("or", a, b)?;
            Ok((a || b).into())
        })
    }

    fn symbol(&mut self, name: Name) -> Result<Value> {
        if let Some(value) = self.lookup(name)? {
            return Ok(value);
        }
        Err(self.unknown("symbol", name))
    }

    /// What a name stands for: a parameter, a variable, a function or constant, or a unit.
    fn lookup(&mut self, name: Name) -> Result<Option<Value>> {
        if !self.ends.is_empty() && self.tree.names.text(name) == "end" {
            return self.end().map(Some);
        }
        if let Some((_, value)) = self.locals[self.frame..]
            .iter()
            .rev()
            .find(|(local, _)| *local == name)
        {
            return Ok(Some(value.clone()));
        }
        let slot = &self.names[name as usize];
        if let Some(value) = slot.variable.as_ref().or(slot.global.as_ref()) {
            if let Value::Unit(unit) = value
                && unit.value.is_none()
                && let [part] = unit.parts.as_slice()
            {
                self.system.learn(part.unit, part.prefix);
            }
            return Ok(Some(value.clone()));
        }
        let text = self.tree.names.text(name);
        let global = match functions::global(text) {
            Some(value) => value,
            None => match unit::table::find(text) {
                Some((unit, prefix)) => {
                    self.system.learn(unit, prefix);
                    Value::unit(Unit::bare(unit, prefix))
                }
                None => return Ok(None),
            },
        };
        self.names[name as usize].global = Some(global.clone());
        Ok(Some(global))
    }

    fn chain(&mut self, list: List, operators: u32) -> Result<Value> {
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
            if !ops::truth("relational", &held)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    /// Whether the condition of `? :` holds.
    fn test(&mut self, test: NodeId) -> Result<bool> {
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
                return Err(crate::error::Error::new(format!(
                    "Unsupported type of condition \"{}\"",
                    other.type_name()
                )));
            }
        })
    }

    fn range(&mut self, start: NodeId, step: Option<NodeId>, end: NodeId) -> Result<Value> {
        let start = self.eval(start)?;
        let end = self.eval(end)?;
        let step = match step {
            Some(step) => self.eval(step)?,
            None => Value::Number(1.0),
        };
        functions::range(&mut self.meter, &start, &end, &step)
    }

    fn array(&mut self, list: List) -> Result<Value> {
        if let Some(columns) = self.literal_columns(list) {
            return self.literal_matrix(list, columns);
        }
        let items = self.arguments(list)?;
        Ok(Value::matrix(Matrix::from_items(&mut self.meter, items)?))
    }

    /// The length of the rows of `[[1, 2], [3, 4]]`, if they are written out and of one length.
    fn literal_columns(&self, list: List) -> Option<u32> {
        let mut columns = None;
        for &row in self.tree.list(list) {
            match self.tree.node(row) {
                Node::Array(row) if row.len > 0 && *columns.get_or_insert(row.len) == row.len => {}
                _ => return None,
            }
        }
        columns
    }

    /// A matrix with two dimensions, its cells evaluated into place.
    fn literal_matrix(&mut self, list: List, columns: u32) -> Result<Value> {
        let tree = self.tree;
        let cells = list.len as usize * columns as usize;
        self.meter.cells(cells)?;
        let mut data = Vec::with_capacity(cells);
        for &row in tree.list(list) {
            if let Node::Array(row) = tree.node(row) {
                for &cell in tree.list(row) {
                    data.push(self.eval(cell)?);
                }
            }
        }
        if data.iter().any(|cell| matches!(cell, Value::Matrix(_))) {
            // More than two dimensions after all: put the rows together one by one.
            let rows = data
                .chunks(columns as usize)
                .map(|row| {
                    Ok(Value::matrix(Matrix::from_items(
                        &mut self.meter,
                        row.to_vec(),
                    )?))
                })
                .collect::<Result<_>>()?;
            return Ok(Value::matrix(Matrix::from_items(&mut self.meter, rows)?));
        }
        Ok(Value::matrix(Matrix::new(
            vec![list.len as usize, columns as usize],
            data,
        )))
    }

    fn object(&mut self, keys: u32, list: List) -> Result<Value> {
        let tree = self.tree;
        let mut object = Object::default();
        for (i, &value) in tree.list(list).iter().enumerate() {
            let value = self.eval(value)?;
            self.meter.cells(2 + i / 16)?;
            object.set(&tree.texts[keys as usize + i], value);
        }
        Ok(Value::Object(Arc::new(object)))
    }

    fn define(&mut self, definition: u32) -> Result<Value> {
        let tree = self.tree;
        let definition = &tree.definitions[definition as usize];
        let parameters: Vec<&str> = definition
            .parameters
            .iter()
            .map(|name| tree.names.text(*name))
            .collect();
        let label = format!(
            "{}({})",
            tree.names.text(definition.name),
            parameters.join(", ")
        );
        let captured = self.locals[self.frame..].to_vec();
        let function = self.closure(
            label,
            definition.parameters.clone(),
            definition.body,
            captured,
        )?;
        self.names[definition.name as usize].variable = Some(function.clone());
        Ok(function)
    }

    /// A function with the parameters around it.
    fn closure(
        &mut self,
        label: String,
        parameters: Arc<[Name]>,
        body: NodeId,
        captured: Vec<(Name, Value)>,
    ) -> Result<Value> {
        let depth = 1 + captured
            .iter()
            .map(|(_, value)| value.depth())
            .max()
            .unwrap_or(0);
        self.meter.cells(3 + captured.len() + label.len() / 32)?;
        Ok(Value::Closure(Arc::new(Closure {
            label,
            parameters,
            body,
            captured,
            depth,
        })))
    }

    fn arguments(&mut self, list: List) -> Result<Vec<Value>> {
        let tree = self.tree;
        tree.list(list)
            .iter()
            .map(|&argument| self.eval(argument))
            .collect()
    }
}

/// A binary operator on two values.
fn binary(meter: &mut Meter, operator: Binary, a: &Value, b: &Value) -> Result<Value> {
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
