//! Function calls, and the error for an unknown name.

use super::Evaluator;
use crate::functions;
use crate::functions::{Function, FunctionBody};
use crate::prelude::*;
use crate::tree::{Name, NodeId, NodeList, SyntaxNode};
use crate::value::Closure;

impl Evaluator<'_> {
    pub(super) fn call_by_name(&mut self, function: NodeId, arguments: NodeList) -> Result<Value> {
        let SyntaxNode::Symbol(name) = self.tree.node(function) else {
            return Ok(Value::Undefined);
        };
        let Some(callee) = self.look_up(name)? else {
            return Err(self.unknown_name_error("function", name));
        };
        let arguments = match &callee {
            Value::Builtin(builtin) if matches!(builtin.body, FunctionBody::WithExpression(_)) => {
                self.eval_arguments_with_expression(function, arguments)?
            }
            Value::Builtin(builtin) if matches!(builtin.body, FunctionBody::Lazy(_)) => {
                return self.call_lazily(builtin, arguments);
            }
            Value::Builtin(builtin) => return self.call_directly(builtin, arguments),
            Value::Closure(closure) => {
                let mark = self.pending_arguments.len();
                let tree = self.tree;
                for &argument in tree.list(arguments) {
                    let value = self.eval(argument)?;
                    self.pending_arguments.push(value);
                }
                return self.call_closure(closure, mark);
            }
            _ => self.eval_arguments(arguments)?,
        };
        if !callee.is_function() {
            let value = crate::format::format_value(
                &mut self.budget,
                &self.system,
                &callee,
                &Default::default(),
            )?;
            let name = self.tree.names.text(name);
            return fail(format!(
                "'{name}' is not a function; its value is: {value}. To multiply, write {name} * (…)"
            ));
        }
        self.call(&callee, &arguments)
    }

    // Builtins with one or two arguments are called without building a list.
    fn call_directly(&mut self, function: &'static Function, arguments: NodeList) -> Result<Value> {
        let tree = self.tree;
        match (function.body, tree.list(arguments)) {
            (FunctionBody::One(_) | FunctionBody::Each(_), &[x]) => {
                let x = self.eval(x)?;
                self.call_builtin(function, &[x])
            }
            (FunctionBody::Two(_) | FunctionBody::Lazy(_), &[x, y]) => {
                let x = self.eval(x)?;
                let y = self.eval(y)?;
                self.call_builtin(function, &[x, y])
            }
            _ => {
                let arguments = self.eval_arguments(arguments)?;
                self.call_builtin(function, &arguments)
            }
        }
    }

    // `and(a, b)` and `or(a, b)` evaluate the second argument only if they need it.
    fn call_lazily(&mut self, function: &'static Function, arguments: NodeList) -> Result<Value> {
        function.check(arguments.len as usize)?;
        let tree = self.tree;
        let nodes = tree.list(arguments);
        let left = self.eval(nodes[0])?;
        match function.name {
            "and" => self.eval_and(&left, nodes[1]),
            _ => self.eval_or(&left, nodes[1]),
        }
    }

    pub(crate) fn call(&mut self, function: &Value, arguments: &[Value]) -> Result<Value> {
        match function {
            Value::Builtin(function) => self.call_builtin(function, arguments),
            Value::Closure(closure) => {
                let mark = self.pending_arguments.len();
                self.pending_arguments.extend_from_slice(arguments);
                self.call_closure(closure, mark)
            }
            other => fail(format!(
                "A {} is not a function and cannot be called",
                other.type_name()
            )),
        }
    }

    fn call_builtin(&mut self, function: &'static Function, arguments: &[Value]) -> Result<Value> {
        function.check(arguments.len())?;
        self.budget.charge_steps(1)?;
        match function.body {
            FunctionBody::One(f) => match &arguments[0] {
                Value::Matrix(_) => fail(format!(
                    "Function '{0}' doesn't apply to matrices. To call it elementwise on a matrix 'M', try 'map(M, {0})'.",
                    function.name
                )),
                value => f(&mut self.budget, value),
            },
            FunctionBody::Each(f) => each(&mut self.budget, &arguments[0], f),
            FunctionBody::Two(f) | FunctionBody::Lazy(f) => {
                f(&mut self.budget, &arguments[0], &arguments[1])
            }
            FunctionBody::Many(f) | FunctionBody::WithExpression(f) => {
                // A callback may nest as deep as the expression.
                self.budget.enter_level()?;
                let result = f(self, arguments);
                self.budget.leave_level();
                result
            }
        }
    }

    // Calls a function defined in the expression, with the arguments pending since `mark`.
    fn call_closure(&mut self, closure: &Closure, mark: usize) -> Result<Value> {
        let (wanted, given) = (
            closure.parameters.len(),
            self.pending_arguments.len() - mark,
        );
        if given != wanted {
            return fail(format!(
                "Too {} arguments in function {} (expected: {wanted}, actual: {given})",
                if given < wanted { "few" } else { "many" },
                closure.name(),
            ));
        }
        // The function sees its own parameters and what it captured, not its caller's.
        let frame = std::mem::replace(&mut self.frame, self.locals.len());
        self.locals.extend_from_slice(&closure.captured);
        self.locals.extend(
            closure
                .parameters
                .iter()
                .copied()
                .zip(self.pending_arguments.drain(mark..)),
        );
        let value = self.eval(closure.body)?;
        self.locals.truncate(self.frame);
        self.frame = frame;
        Ok(value)
    }

    pub(crate) fn parameter_count(function: &Value) -> usize {
        match function {
            Value::Closure(closure) => closure.parameters.len(),
            Value::Builtin(function) => function.arity.1.min(1).max(function.arity.0),
            _ => 0,
        }
    }

    // The arguments of a function such as `map`, whose last one may be an
    // expression: `map([1, 2], x^2)`.
    fn eval_arguments_with_expression(
        &mut self,
        function: NodeId,
        list: NodeList,
    ) -> Result<Vec<Value>> {
        let tree = self.tree;
        let nodes = tree.list(list);
        let mut values = Vec::with_capacity(nodes.len());
        let mut before = function;
        for (i, &node) in nodes.iter().enumerate() {
            let is_expression = i > 0
                && i + 1 == nodes.len()
                && !matches!(
                    tree.node(node),
                    SyntaxNode::Symbol(_)
                        | SyntaxNode::Function(_)
                        | SyntaxNode::Text(_)
                        | SyntaxNode::Number(_)
                );
            // Nodes come after their children, so all nodes since the last argument belong to this
            // one.
            let free = if is_expression {
                self.free_name(before + 1, node)?
            } else {
                None
            };
            values.push(match free {
                Some(name) => {
                    let captured = self.locals[self.frame..].to_vec();
                    self.make_closure(
                        format!("expression({})", tree.names.text(name)),
                        [name].into(),
                        node,
                        captured,
                    )?
                }
                None => self.eval(node)?,
            });
            before = node;
        }
        Ok(values)
    }

    fn free_name(&mut self, from: NodeId, to: NodeId) -> Result<Option<Name>> {
        for node in from..=to {
            if let SyntaxNode::Symbol(name) = self.tree.node(node)
                && functions::find_global(self.tree.names.text(name)).is_none()
                && self.names[name as usize].variable.is_none()
                && !self.locals[self.frame..]
                    .iter()
                    .any(|(local, _)| *local == name)
            {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// The error for an unknown name, with the nearest known one as a suggestion.
    pub(super) fn unknown_name_error(&self, what: &str, name: Name) -> MathError {
        let text = self.tree.names.text(name);
        if let Some(reason) = functions::omission_reason(text) {
            return MathError::new(format!("Undefined {what} {text}: {reason}"));
        }
        let mut names: Vec<&str> = functions::known_names().collect();
        names.extend(
            (0..self.names.len())
                .filter(|&at| self.names[at].variable.is_some())
                .map(|at| self.tree.names.text(at as Name)),
        );
        let shown: String = text.chars().take(40).collect();
        match nearest(text, names.into_iter()) {
            Some(near) => MathError::new(format!("Undefined {what} {shown}; did you mean {near}?")),
            None => MathError::new(format!("Undefined {what} {shown}")),
        }
    }
}

fn each(
    budget: &mut crate::budget::BudgetTracker,
    value: &Value,
    f: fn(&mut crate::budget::BudgetTracker, &Value) -> Result<Value>,
) -> Result<Value> {
    match value {
        Value::Matrix(matrix) => matrix.map(budget, |budget, cell| {
            let result = f(budget, cell)?;
            // A result that is still zero keeps the sign of the cell.
            Ok(match (cell, &result) {
                (Value::Number(0.0), Value::Number(0.0)) => cell.clone(),
                _ => result,
            })
        }),
        value => f(budget, value),
    }
}

// The nearest name that is at most two typing errors away from `text`.
fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const MAX_LEN: usize = 32;
    if text.len() > MAX_LEN || text.len() < 3 {
        return None;
    }
    let allowed = if text.len() < 5 { 1 } else { 2 };
    names
        .filter(|name| name.len() > 1 && name.len().abs_diff(text.len()) <= allowed)
        .map(|name| {
            let distance = strsim::osa_distance(&text.to_lowercase(), &name.to_lowercase());
            (distance, name)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}
