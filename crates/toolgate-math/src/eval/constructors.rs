//! Evaluates literals: ranges, lists, objects and functions.

use std::sync::Arc;

use super::Evaluator;
use crate::functions;
use crate::prelude::*;
use crate::tree::{Name, NodeId, NodeList, SyntaxNode};
use crate::value::{Closure, MathObject};

impl Evaluator<'_> {
    pub(super) fn eval_range(
        &mut self,
        start: NodeId,
        step: Option<NodeId>,
        end: NodeId,
    ) -> Result<Value> {
        let start = self.eval(start)?;
        let end = self.eval(end)?;
        let step = match step {
            Some(step) => self.eval(step)?,
            None => Value::Number(1.0),
        };
        functions::range(&mut self.budget, &start, &end, &step)
    }

    pub(super) fn eval_array(&mut self, list: NodeList) -> Result<Value> {
        if let Some(columns) = self.literal_columns(list) {
            return self.literal_matrix(list, columns);
        }
        let items = self.eval_arguments(list)?;
        Ok(Value::from(Matrix::from_items(&mut self.budget, items)?))
    }

    // The row length of a literal such as `[[1, 2], [3, 4]]`, if all rows have the same length.
    fn literal_columns(&self, list: NodeList) -> Option<u32> {
        let mut columns = None;
        for &row in self.tree.list(list) {
            match self.tree.node(row) {
                SyntaxNode::Array(row)
                    if row.len > 0 && *columns.get_or_insert(row.len) == row.len => {}
                _ => return None,
            }
        }
        columns
    }

    // The common case: cells are evaluated in place, without a matrix for each row.
    fn literal_matrix(&mut self, list: NodeList, columns: u32) -> Result<Value> {
        let tree = self.tree;
        let cells = list.len as usize * columns as usize;
        self.budget.charge_cells(cells)?;
        let mut data = Vec::with_capacity(cells);
        for &row in tree.list(list) {
            if let SyntaxNode::Array(row) = tree.node(row) {
                for &cell in tree.list(row) {
                    data.push(self.eval(cell)?);
                }
            }
        }
        if data.iter().any(|cell| matches!(cell, Value::Matrix(_))) {
            // A row contains matrices, so the rows have to be joined one by one.
            let rows = data
                .chunks(columns as usize)
                .map(|row| {
                    Ok(Value::from(Matrix::from_items(
                        &mut self.budget,
                        row.to_vec(),
                    )?))
                })
                .collect::<Result<_>>()?;
            return Ok(Value::from(Matrix::from_items(&mut self.budget, rows)?));
        }
        Ok(Value::matrix(
            vec![list.len as usize, columns as usize],
            data,
        ))
    }

    pub(super) fn eval_object(&mut self, keys: u32, list: NodeList) -> Result<Value> {
        let tree = self.tree;
        let mut object = MathObject::default();
        for (i, &value) in tree.list(list).iter().enumerate() {
            let value = self.eval(value)?;
            // Setting a key searches all keys before it.
            self.budget.charge_cells(2 + i / 16)?;
            object.set(&tree.texts[keys as usize + i], value);
        }
        Ok(Value::Object(Arc::new(object)))
    }

    pub(super) fn define_function(&mut self, definition: u32) -> Result<Value> {
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
        let function = self.make_closure(
            label,
            definition.parameters.clone(),
            definition.body,
            captured,
        )?;
        self.names[definition.name as usize].variable = Some(function.clone());
        Ok(function)
    }

    /// A function that captures the parameters around it.
    pub(super) fn make_closure(
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
        self.budget
            .charge_cells(3 + captured.len() + label.len() / 32)?;
        Ok(Value::Closure(Arc::new(Closure {
            label,
            parameters,
            body,
            captured,
            depth,
        })))
    }
}
