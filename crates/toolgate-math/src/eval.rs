//! Walks the tree and computes.
//!
//! Operators that lean left (`1 + 1 + …`, `a[1][2]…`) are walked in a loop over [`Run::spine`]; only what the parser already
//! counted as a level of nesting, and calls, recurse.

mod call;
mod index;
mod make;
mod operators;
mod spine;

pub(crate) use index::{pick, read_pick, replace};

use std::sync::Arc;

use crate::budget::Meter;
use crate::error::Result;
use crate::functions;
use crate::ops;
use crate::tree::{Binary, List, Name, Node, NodeId, Tree};
use crate::unit::{self, System, Unit};
use crate::value::Value;
use operators::binary;
use spine::Spine;

pub(crate) struct Run<'a> {
    tree: &'a Tree<'a>,
    pub(crate) meter: Meter,
    /// The units the expression has named.
    pub(crate) system: System,
    names: Vec<Slot>,
    /// Parameters of the running calls; those of the innermost one start at `frame`.
    locals: Vec<(Name, Value)>,
    frame: usize,
    /// Arguments of calls that are about to begin.
    pending: Vec<Value>,
    spine: Spine,
    /// What is being indexed, and in which dimension: the meaning of `end`.
    ends: Vec<(Value, usize)>,
}

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
            pending: Vec::new(),
            spine: Spine::default(),
            ends: Vec::new(),
        }
    }

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
            Node::Binary(operator, _, right) => {
                if let Some(value) = ops::decided(operator, &left) {
                    return Ok(value);
                }
                let right = match self.tree.node(right) {
                    Node::Number(value) => Value::Number(value),
                    Node::Symbol(name) => self.symbol(name)?,
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

    fn arguments(&mut self, list: List) -> Result<Vec<Value>> {
        let tree = self.tree;
        tree.list(list)
            .iter()
            .map(|&argument| self.eval(argument))
            .collect()
    }
}
