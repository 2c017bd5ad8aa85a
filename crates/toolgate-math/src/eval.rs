//! The evaluator: walks the tree and computes values.
//!
//! Left-leaning operators (`1 + 1 + …`, `a[1][2]…`) are walked in a loop over
//! [`Evaluator::node_stack`]. Only calls, and what the parser already counted as a
//! level of nesting, recurse.

mod call;
mod constructors;
mod indexing;
mod node_stack;
mod operators;

pub(crate) use indexing::{pick, read_pick, replace};

use std::sync::Arc;

use crate::prelude::*;
use crate::tree::{BinaryOperator, Name, NodeId, NodeList, SyntaxNode, SyntaxTree};
use crate::unit::{Unit, UnitSystem};
use crate::{functions, unit};
use node_stack::NodeStack;
use operators::binary;

pub(crate) struct Evaluator<'a> {
    tree: &'a SyntaxTree<'a>,
    pub(crate) meter: Meter,
    pub(crate) system: UnitSystem,
    names: Vec<NameSlot>,
    /// Parameters of the running calls. Those of the innermost call start at `frame`.
    locals: Vec<(Name, Value)>,
    frame: usize,
    pending: Vec<Value>,
    spine: NodeStack,
    /// What is being indexed, and in which dimension. Gives `end` its meaning.
    ends: Vec<(Value, usize)>,
}

#[derive(Clone, Default)]
struct NameSlot {
    variable: Option<Value>,
    // Cached, because a loop may look up the same name many times.
    global: Option<Value>,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(tree: &'a SyntaxTree<'a>, meter: Meter) -> Self {
        Self {
            tree,
            meter,
            system: UnitSystem::default(),
            names: vec![NameSlot::default(); tree.names.len()],
            locals: Vec::new(),
            frame: 0,
            pending: Vec::new(),
            spine: NodeStack::default(),
            ends: Vec::new(),
        }
    }

    pub(crate) fn run(&mut self) -> Result<Value> {
        match self.tree.node(self.tree.root) {
            SyntaxNode::Block(list) => self.block(list),
            _ => self.eval(self.tree.root),
        }
    }

    fn block(&mut self, list: NodeList) -> Result<Value> {
        let tree = self.tree;
        let mut shown = Vec::new();
        for &statement in tree.list(list) {
            match tree.node(statement) {
                SyntaxNode::Hidden(inner) => {
                    self.eval(inner)?;
                }
                _ => shown.push(self.eval(statement)?),
            }
        }
        Ok(Value::Results(Arc::new(shown)))
    }

    pub(crate) fn eval(&mut self, node: NodeId) -> Result<Value> {
        self.meter.enter()?;
        let mark = self.spine.len();
        let mut at = node;
        loop {
            match self.tree.node(at) {
                SyntaxNode::Group(inner) | SyntaxNode::Hidden(inner) => at = inner,
                SyntaxNode::Unary(_, left)
                | SyntaxNode::Binary(_, left, _)
                | SyntaxNode::Index { object: left, .. }
                | SyntaxNode::Property { object: left, .. } => {
                    self.spine.push(at);
                    at = left;
                }
                SyntaxNode::Call(function, _)
                    if !matches!(self.tree.node(function), SyntaxNode::Symbol(_)) =>
                {
                    self.spine.push(at);
                    at = function;
                }
                // The chosen branch replaces the condition and costs no level of nesting.
                SyntaxNode::Conditional(test, yes, no) => {
                    at = if self.test(test)? { yes } else { no }
                }
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
        // Every value passes here, so none can nest deeper than can be written and dropped.
        self.meter.nested(value.depth())?;
        self.meter.leave();
        Ok(value)
    }

    fn leaf(&mut self, node: NodeId) -> Result<Value> {
        match self.tree.node(node) {
            SyntaxNode::Number(value) => Ok(Value::Number(value)),
            SyntaxNode::Text(text) => Ok(Value::Text(self.tree.texts[text as usize].clone())),
            SyntaxNode::True => Ok(Value::Bool(true)),
            SyntaxNode::False => Ok(Value::Bool(false)),
            SyntaxNode::Null => Ok(Value::Null),
            SyntaxNode::Symbol(name) => self.symbol(name),
            SyntaxNode::Call(function, arguments) => self.call_by_name(function, arguments),
            SyntaxNode::Chain { list, operators } => self.chain(list, operators),
            SyntaxNode::Range { start, step, end } => self.range(start, step, end),
            SyntaxNode::Array(list) => self.array(list),
            SyntaxNode::Object { keys, list } => self.object(keys, list),
            SyntaxNode::Assign(name, value) => {
                let value = self.eval(value)?;
                self.names[name as usize].variable = Some(value.clone());
                Ok(value)
            }
            SyntaxNode::AssignAt(place, value) => self.assign_at(place, value),
            SyntaxNode::Function(definition) => self.define(definition),
            SyntaxNode::Block(list) => self.block(list),
            _ => Ok(Value::Undefined),
        }
    }

    fn apply(&mut self, node: NodeId, left: Value) -> Result<Value> {
        match self.tree.node(node) {
            SyntaxNode::Unary(operator, _) => self.unary(operator, &left),
            SyntaxNode::Binary(BinaryOperator::And, _, right) => self.and(&left, right),
            SyntaxNode::Binary(BinaryOperator::Or, _, right) => self.or(&left, right),
            SyntaxNode::Binary(BinaryOperator::Nullish, _, right) => match left {
                Value::Null | Value::Undefined => self.eval(right),
                left => Ok(left),
            },
            SyntaxNode::Binary(operator, _, right) => {
                if let Some(value) = ops::short_circuit(operator, &left) {
                    return Ok(value);
                }
                let right = match self.tree.node(right) {
                    SyntaxNode::Number(value) => Value::Number(value),
                    SyntaxNode::Symbol(name) => self.symbol(name)?,
                    _ => self.eval(right)?,
                };
                binary(&mut self.meter, operator, &left, &right)
            }
            SyntaxNode::Index { list, optional, .. } => match left {
                Value::Null | Value::Undefined if optional => Ok(Value::Undefined),
                left => self.index(left, list),
            },
            SyntaxNode::Property { key, optional, .. } => match left {
                Value::Null | Value::Undefined if optional => Ok(Value::Undefined),
                left => self.property(&left, key),
            },
            SyntaxNode::Call(_, arguments) => {
                let arguments = self.arguments(arguments)?;
                self.call(&left, &arguments)
            }
            _ => Ok(left),
        }
    }

    fn symbol(&mut self, name: Name) -> Result<Value> {
        if let Some(value) = self.lookup(name)? {
            return Ok(value);
        }
        Err(self.unknown("symbol", name))
    }

    // In this order, so that an expression can shadow functions, and functions hide units.
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

    fn arguments(&mut self, list: NodeList) -> Result<Vec<Value>> {
        let tree = self.tree;
        tree.list(list)
            .iter()
            .map(|&argument| self.eval(argument))
            .collect()
    }
}
