//! Indexing (`a[2, 1:3]`, `a.b`) and assignment to it. Indexes count from 1.

use std::sync::Arc;

use super::Evaluator;
use crate::prelude::*;
use crate::tree::{NodeId, NodeList, SyntaxNode};
use crate::value::MathObject;

/// The indexes of one dimension, counted from 0.
pub(crate) enum IndexPicks {
    One(usize),
    Many(Vec<usize>),
}

impl IndexPicks {
    fn all(&self) -> &[usize] {
        match self {
            Self::One(at) => std::slice::from_ref(at),
            Self::Many(all) => all,
        }
    }
}

impl Evaluator<'_> {
    pub(super) fn eval_index(&mut self, object: Value, list: NodeList) -> Result<Value> {
        if let Value::Object(object) = &object {
            let key = self.eval_key(list)?;
            return Ok(object.get(&key).cloned().unwrap_or(Value::Undefined));
        }
        if !matches!(object, Value::Matrix(_) | Value::Text(_)) {
            return not_indexable(&object);
        }
        let (object, picks) = self.eval_picks(object, list)?;
        pick(&mut self.budget, &object, &picks)
    }

    fn eval_key(&mut self, list: NodeList) -> Result<Arc<str>> {
        let tree = self.tree;
        match tree.list(list) {
            &[key] => match self.eval(key)? {
                Value::Text(key) => Ok(key),
                other => fail(format!(
                    "Cannot apply a numeric index as object property ({})",
                    other.type_name()
                )),
            },
            _ => fail("An object takes one key: write object[\"key\"] or object.key"),
        }
    }

    // The indexes of each dimension. `end` means the size of `object` there.
    fn eval_picks(&mut self, object: Value, list: NodeList) -> Result<(Value, Vec<IndexPicks>)> {
        let tree = self.tree;
        let mut picks = Vec::with_capacity(list.len as usize);
        let mut object = object;
        for (dimension, &node) in tree.list(list).iter().enumerate() {
            // `end` in this index means the size of this object.
            self.indexed.push((object, dimension));
            let value = self.eval(node)?;
            let Some((back, _)) = self.indexed.pop() else {
                return Err(type_error("index", &value));
            };
            object = back;
            picks.push(read_picks(&mut self.budget, &value)?);
        }
        Ok((object, picks))
    }

    pub(super) fn index_end(&self) -> Result<Value> {
        let size = match self.indexed.last() {
            Some((Value::Matrix(matrix), dimension)) => matrix.size.get(*dimension).copied(),
            Some((Value::Text(text), 0)) => Some(text.encode_utf16().count()),
            _ => None,
        };
        size.map(|size| Value::Number(size as f64))
            .ok_or_else(|| MathError::new("Undefined symbol end"))
    }

    pub(super) fn eval_property(&mut self, object: &Value, key: u32) -> Result<Value> {
        let key = &self.tree.texts[key as usize];
        match object {
            Value::Object(object) => Ok(object.get(key).cloned().unwrap_or(Value::Undefined)),
            _ => no_property(key, object),
        }
    }

    /// Assigns to a part of a variable.
    pub(super) fn assign_at(&mut self, place: NodeId, value: NodeId) -> Result<Value> {
        let value = self.eval(value)?;
        let mut place = place;
        let mut new = value.clone();
        // Values are shared, so each container is replaced by a changed copy,
        // from the innermost outwards.
        loop {
            (place, new) = match self.tree.node(place) {
                SyntaxNode::Index { object, list, .. } => {
                    let container = self.eval(object)?;
                    let changed = self.with_index(container, list, &new)?;
                    (object, changed)
                }
                SyntaxNode::Property { object, key, .. } => {
                    let container = self.eval(object)?;
                    let key = self.tree.texts[key as usize].clone();
                    let changed = self.with_key(&container, &key, new)?;
                    (object, changed)
                }
                SyntaxNode::Symbol(name) => {
                    self.budget.check_depth(new.depth())?;
                    self.names[name as usize].variable = Some(new);
                    return Ok(value);
                }
                _ => {
                    return fail("Only a variable or a part of one can be assigned to");
                }
            };
        }
    }

    fn with_key(&mut self, container: &Value, key: &Arc<str>, new: Value) -> Result<Value> {
        let Value::Object(object) = container else {
            return no_property(key, container);
        };
        self.budget.charge_cells(2 * object.entries.len() + 2)?;
        let mut object = MathObject::clone(object);
        object.set(key, new);
        Ok(Value::Object(Arc::new(object)))
    }

    fn with_index(&mut self, container: Value, list: NodeList, new: &Value) -> Result<Value> {
        match &container {
            Value::Object(_) => {
                let key = self.eval_key(list)?;
                self.with_key(&container, &key, new.clone())
            }
            Value::Matrix(_) | Value::Text(_) => {
                let (container, picks) = self.eval_picks(container, list)?;
                replace(&mut self.budget, &container, &picks, new)
            }
            _ => not_indexable(&container),
        }
    }
}

/// Reads indexes: a number, a list of numbers, or a list of booleans.
pub(crate) fn read_picks(budget: &mut BudgetTracker, value: &Value) -> Result<IndexPicks> {
    let place = |value: &Value| -> Result<usize> {
        let number = match value {
            Value::Number(_) | Value::Big(_) => value.to_number("index")?,
            _ => {
                return fail(
                    "Dimension must be an Array, Matrix, number, bigint, string, or Range",
                );
            }
        };
        if number.fract() != 0.0 {
            return fail(format!("Index must be an integer (value: {number})"));
        }
        if number < 1.0 {
            return fail(format!("Index out of range ({number} < 1)"));
        }
        Ok(number as usize - 1)
    };
    let Value::Matrix(matrix) = value else {
        return Ok(IndexPicks::One(place(value)?));
    };
    budget.charge_cells(matrix.data.len())?;
    if matrix
        .data
        .iter()
        .any(|cell| matches!(cell, Value::Bool(_)))
    {
        let chosen = matrix
            .data
            .iter()
            .enumerate()
            .filter(|(_, cell)| matches!(cell, Value::Bool(true)))
            .map(|(at, _)| at);
        return Ok(IndexPicks::Many(chosen.collect()));
    }
    Ok(IndexPicks::Many(
        matrix.data.iter().map(place).collect::<Result<_>>()?,
    ))
}

fn not_indexable<T>(object: &Value) -> Result<T> {
    let kind = object.type_name();
    fail(format!(
        "Cannot apply index: unsupported type of object ({kind})"
    ))
}

fn no_property<T>(key: &str, object: &Value) -> Result<T> {
    let kind = object.type_name();
    fail(format!("No access to property \"{key}\" of a {kind}"))
}

pub(crate) fn pick(
    budget: &mut BudgetTracker,
    object: &Value,
    picks: &[IndexPicks],
) -> Result<Value> {
    match object {
        Value::Matrix(matrix) => pick_cells(budget, matrix, picks),
        Value::Text(text) => {
            let [pick] = picks else {
                return matrix::size_mismatch(picks.len(), 1);
            };
            let letters: Vec<char> = text.chars().collect();
            budget.charge_text(text.len())?;
            let picked: Result<String> = pick
                .all()
                .iter()
                .map(|&at| match letters.get(at) {
                    Some(letter) => Ok(*letter),
                    None => matrix::out_of_range(at, letters.len()),
                })
                .collect();
            Ok(Value::text(picked?))
        }
        _ => Err(type_error("subset", object)),
    }
}

fn check_dimensions(matrix: &Matrix, picks: &[IndexPicks]) -> Result<()> {
    if picks.len() != matrix.size.len() {
        return matrix::size_mismatch(picks.len(), matrix.size.len());
    }
    Ok(())
}

fn pick_cells(budget: &mut BudgetTracker, matrix: &Matrix, picks: &[IndexPicks]) -> Result<Value> {
    check_dimensions(matrix, picks)?;
    for (pick, &length) in picks.iter().zip(&matrix.size) {
        if let Some(&at) = pick.all().iter().find(|&&at| at >= length) {
            return matrix::out_of_range(at, length);
        }
    }
    let counts: Vec<usize> = picks.iter().map(|pick| pick.all().len()).collect();
    let cells = matrix::cell_count(budget, &counts)?;
    let data: Vec<Value> = (0..cells)
        .map(|at| matrix.data[source(at, &counts, picks, &matrix.size)].clone())
        .collect();
    let size: Vec<usize> = picks
        .iter()
        .filter_map(|pick| match pick {
            IndexPicks::One(_) => None,
            IndexPicks::Many(all) => Some(all.len()),
        })
        .collect();
    Ok(matrix::collapse(size, data))
}

// The index in the matrix of the `at`-th picked cell.
fn source(at: usize, counts: &[usize], picks: &[IndexPicks], size: &[usize]) -> usize {
    let place: Vec<usize> = matrix::unravel(at, counts)
        .iter()
        .zip(picks)
        .map(|(&i, pick)| pick.all()[i])
        .collect();
    matrix::ravel(&place, size)
}

/// Copies `object` with the picked cells or letters replaced. A matrix grows if necessary.
pub(crate) fn replace(
    budget: &mut BudgetTracker,
    object: &Value,
    picks: &[IndexPicks],
    new: &Value,
) -> Result<Value> {
    match object {
        Value::Matrix(matrix) => replace_cells(budget, matrix, picks, new),
        Value::Text(text) => replace_letters(budget, text, picks, new),
        _ => Err(type_error("subset", object)),
    }
}

fn replace_letters(
    budget: &mut BudgetTracker,
    text: &str,
    picks: &[IndexPicks],
    new: &Value,
) -> Result<Value> {
    let [pick] = picks else {
        return matrix::size_mismatch(picks.len(), 1);
    };
    let new: Vec<char> = new.as_text("subset")?.chars().collect();
    let all = pick.all();
    if all.len() != new.len() {
        return matrix::size_mismatch(all.len(), new.len());
    }
    let mut letters: Vec<char> = text.chars().collect();
    let longest = all.iter().max().map_or(0, |at| at + 1).max(letters.len());
    budget.charge_text(longest.saturating_mul(4))?;
    letters.resize(longest, ' ');
    for (&at, letter) in all.iter().zip(new) {
        letters[at] = letter;
    }
    Ok(Value::text(letters.into_iter().collect::<String>()))
}

fn replace_cells(
    budget: &mut BudgetTracker,
    matrix: &Matrix,
    picks: &[IndexPicks],
    new: &Value,
) -> Result<Value> {
    let mut target = matrix.clone();
    // An empty list may become a matrix of any number of dimensions.
    if target.data.is_empty() && picks.len() > target.size.len() {
        target.size = vec![0; picks.len()];
    }
    check_dimensions(&target, picks)?;
    let needed: Vec<usize> = picks
        .iter()
        .zip(&target.size)
        .map(|(pick, &length)| {
            pick.all()
                .iter()
                .max()
                .map_or(0, |at| at.saturating_add(1))
                .max(length)
        })
        .collect();
    budget.charge_cells(target.data.len())?;
    if needed != target.size {
        target = target.resized(budget, &needed, &Value::Number(0.0))?;
    }
    let counts: Vec<usize> = picks.iter().map(|pick| pick.all().len()).collect();
    let cells = matrix::cell_count(budget, &counts)?;
    let sources = match new {
        Value::Matrix(source) => {
            let wide = |size: &[usize]| -> Vec<usize> {
                size.iter().copied().filter(|&n| n != 1).collect()
            };
            if wide(&source.size) != wide(&counts) {
                return matrix::size_mismatch(
                    matrix::size_text(&counts),
                    matrix::size_text(&source.size),
                );
            }
            Some(source)
        }
        _ => None,
    };
    for at in 0..cells {
        let to = source(at, &counts, picks, &target.size);
        target.data[to] = match sources {
            Some(source) => source.data[at].clone(),
            None => new.clone(),
        };
    }
    Ok(Value::matrix(target.size, target.data))
}
