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

pub(crate) use indexing::{pick, read_picks, replace};

use std::sync::Arc;

use crate::prelude::*;
use crate::tree::{BinaryOperator, Name, NodeId, NodeList, SyntaxNode, SyntaxTree};
use crate::unit::{Unit, UnitSystem};
use crate::{functions, unit};
use node_stack::NodeStack;
use operators::apply_binary;

pub(crate) struct Evaluator<'a> {
    tree: &'a SyntaxTree<'a>,
    pub(crate) budget: BudgetTracker,
    pub(crate) system: UnitSystem,
    names: Vec<NameSlot>,
    /// Parameters of the running calls. Those of the innermost call start at `frame`.
    locals: Vec<(Name, Value)>,
    frame: usize,
    pending_arguments: Vec<Value>,
    node_stack: NodeStack,
    /// The values being indexed, innermost last, and the dimension of each. `end` is the
    /// size of that dimension.
    indexed: Vec<(Value, usize)>,
}

#[derive(Clone, Default)]
struct NameSlot {
    variable: Option<Value>,
    // A function, constant or unit. Cached, because a loop may look up the same name many times.
    global: Option<Value>,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(tree: &'a SyntaxTree<'a>, budget: BudgetTracker) -> Self {
        Self {
            tree,
            budget,
            system: UnitSystem::default(),
            names: vec![NameSlot::default(); tree.names.len()],
            locals: Vec::new(),
            frame: 0,
            pending_arguments: Vec::new(),
            node_stack: NodeStack::default(),
            indexed: Vec::new(),
        }
    }

    pub(crate) fn run(&mut self) -> Result<Value> {
        match self.tree.node(self.tree.root) {
            SyntaxNode::Block(list) => self.eval_block(list),
            _ => self.eval(self.tree.root),
        }
    }

    fn eval_block(&mut self, list: NodeList) -> Result<Value> {
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
        self.budget.enter_level()?;
        let mark = self.node_stack.len();
        let mut at = node;
        loop {
            match self.tree.node(at) {
                SyntaxNode::Group(inner) | SyntaxNode::Hidden(inner) => at = inner,
                SyntaxNode::Unary(_, left)
                | SyntaxNode::Binary(_, left, _)
                | SyntaxNode::Index { object: left, .. }
                | SyntaxNode::Property { object: left, .. } => {
                    self.node_stack.push(at);
                    at = left;
                }
                SyntaxNode::Call(function, _)
                    if !matches!(self.tree.node(function), SyntaxNode::Symbol(_)) =>
                {
                    self.node_stack.push(at);
                    at = function;
                }
                // The chosen branch replaces the condition and costs no level of nesting.
                SyntaxNode::Conditional(test, yes, no) => {
                    at = if self.eval_condition(test)? { yes } else { no }
                }
                _ => break,
            }
        }
        let mut value = self.eval_leaf(at)?;
        while self.node_stack.len() > mark
            && let Some(above) = self.node_stack.pop()
        {
            self.budget.charge_steps(1)?;
            value = self.apply_node(above, value)?;
        }
        // Every value passes here, so none nests too deep to be formatted and dropped recursively.
        self.budget.check_depth(value.depth())?;
        self.budget.leave_level();
        Ok(value)
    }

    fn eval_leaf(&mut self, node: NodeId) -> Result<Value> {
        match self.tree.node(node) {
            SyntaxNode::Number(value) => Ok(Value::Number(value)),
            SyntaxNode::Text(text) => Ok(Value::Text(self.tree.texts[text as usize].clone())),
            SyntaxNode::True => Ok(Value::Bool(true)),
            SyntaxNode::False => Ok(Value::Bool(false)),
            SyntaxNode::Null => Ok(Value::Null),
            SyntaxNode::Symbol(name) => self.eval_symbol(name),
            SyntaxNode::Call(function, arguments) => self.call_by_name(function, arguments),
            SyntaxNode::Chain { list, operators } => self.eval_chain(list, operators),
            SyntaxNode::Range { start, step, end } => self.eval_range(start, step, end),
            SyntaxNode::Array(list) => self.eval_array(list),
            SyntaxNode::Object { keys, list } => self.eval_object(keys, list),
            SyntaxNode::Assign(name, value) => {
                let value = self.eval(value)?;
                self.names[name as usize].variable = Some(value.clone());
                Ok(value)
            }
            SyntaxNode::AssignAt(place, value) => self.assign_at(place, value),
            SyntaxNode::Function(definition) => self.define_function(definition),
            SyntaxNode::Block(list) => self.eval_block(list),
            _ => Ok(Value::Undefined),
        }
    }

    fn apply_node(&mut self, node: NodeId, left: Value) -> Result<Value> {
        match self.tree.node(node) {
            SyntaxNode::Unary(operator, _) => self.apply_unary(operator, &left),
            SyntaxNode::Binary(BinaryOperator::And, _, right) => self.eval_and(&left, right),
            SyntaxNode::Binary(BinaryOperator::Or, _, right) => self.eval_or(&left, right),
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
                    SyntaxNode::Symbol(name) => self.eval_symbol(name)?,
                    _ => self.eval(right)?,
                };
                apply_binary(&mut self.budget, operator, &left, &right)
            }
            SyntaxNode::Index { list, optional, .. } => match left {
                Value::Null | Value::Undefined if optional => Ok(Value::Undefined),
                left => self.eval_index(left, list),
            },
            SyntaxNode::Property { key, optional, .. } => match left {
                Value::Null | Value::Undefined if optional => Ok(Value::Undefined),
                left => self.eval_property(&left, key),
            },
            SyntaxNode::Call(_, arguments) => {
                let arguments = self.eval_arguments(arguments)?;
                self.call(&left, &arguments)
            }
            _ => Ok(left),
        }
    }

    fn eval_symbol(&mut self, name: Name) -> Result<Value> {
        if let Some(value) = self.look_up(name)? {
            return Ok(value);
        }
        Err(self.unknown_name_error("symbol", name))
    }

    // The order lets an expression shadow functions, and functions hide units.
    fn look_up(&mut self, name: Name) -> Result<Option<Value>> {
        if !self.indexed.is_empty() && self.tree.names.text(name) == "end" {
            return self.index_end().map(Some);
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
        let global = match functions::find_global(text) {
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

    fn eval_arguments(&mut self, list: NodeList) -> Result<Vec<Value>> {
        let tree = self.tree;
        tree.list(list)
            .iter()
            .map(|&argument| self.eval(argument))
            .collect()
    }
}
