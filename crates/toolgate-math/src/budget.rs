//! The limits of an evaluation, and the tracker that counts against them.

use std::time::Duration;

use crate::error::{MathError, Result};
use crate::value::Value;

/// The limits of one evaluation. Exceeding one is an error that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The length of the expression in bytes.
    pub length: usize,
    /// The nesting of brackets, operators, calls, and values in values. Every level costs stack;
    /// the default fits a thread with 256 KiB.
    pub depth: usize,
    /// The number of nodes of the parsed expression.
    pub nodes: usize,
    /// The number of operations, counted in every loop.
    pub steps: u64,
    /// The number of matrix cells, object entries and 32-byte pieces of text that the whole
    /// evaluation makes. Each takes about 32 bytes.
    pub cells: usize,
    /// The number of decimal digits of one big number or fraction.
    pub digits: usize,
    /// The length in bytes of any text that the expression makes.
    pub text: usize,
    /// Wall-clock time, checked every few hundred steps.
    pub time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            length: 16 * 1024,
            depth: 160,
            nodes: 8 * 1024,
            steps: 400_000,
            cells: 200_000,
            digits: 2_000,
            text: 32 * 1024,
            time: Duration::from_millis(30),
        }
    }
}

/// Counts what an evaluation uses against its [`Budget`].
#[derive(Debug)]
pub(crate) struct BudgetTracker {
    steps: u64,
    next_check: u64,
    cells: usize,
    depth: usize,
    clock: Option<BudgetClock>,
    budget: Budget,
}

// Steps between two checks of the clock, because reading it costs more than a step.
const STEPS_PER_CLOCK_CHECK: u64 = 512;

impl BudgetTracker {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self {
            steps: 0,
            next_check: STEPS_PER_CLOCK_CHECK,
            cells: 0,
            depth: 0,
            clock: None,
            budget: *budget,
        }
    }

    // Writing an answer gets half the time that computing it had.
    pub(crate) fn for_output(budget: &Budget) -> Self {
        let mut tracker = Self::new(budget);
        tracker.budget.time /= 2;
        // The number of cells bounds the whole answer, and no expression uses its text any more.
        tracker.budget.text = usize::MAX;
        tracker
    }

    #[inline]
    pub(crate) fn charge_steps(&mut self, n: usize) -> Result<()> {
        self.steps += n as u64;
        if self.steps < self.next_check {
            return Ok(());
        }
        self.check_limits()
    }

    #[cold]
    fn check_limits(&mut self) -> Result<()> {
        self.next_check = self.steps + STEPS_PER_CLOCK_CHECK;
        if self.steps > self.budget.steps {
            return Err(exceeded("steps", self.budget.steps));
        }
        // Started at the first check, so short expressions never read the clock at all.
        let clock = self.clock.get_or_insert_with(BudgetClock::start);
        if clock.has_passed(self.budget.time) {
            return Err(exceeded("time", self.budget.time.as_millis()));
        }
        Ok(())
    }

    // The step counted for a cell pays for a plain number. Any other value costs more to process.
    #[inline]
    pub(crate) fn charge_cell_work(&mut self, cell: &Value) -> Result<()> {
        match cell {
            Value::Number(_) | Value::Bool(_) | Value::Null => Ok(()),
            _ => self.charge_steps(8),
        }
    }

    /// Counts `n` new cells of about 32 bytes, before they are made.
    pub(crate) fn charge_cells(&mut self, n: usize) -> Result<()> {
        self.cells = self.cells.saturating_add(n);
        if self.cells > self.budget.cells {
            return Err(exceeded("cells", self.budget.cells));
        }
        self.charge_steps(n)
    }

    /// Counts a new text of `bytes` bytes, before it is made.
    pub(crate) fn charge_text(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.budget.text {
            return Err(exceeded("text", self.budget.text));
        }
        self.charge_cells(bytes / 32 + 1)
    }

    /// Counts a new big number or fraction of `bits` bits.
    pub(crate) fn charge_big(&mut self, bits: u64) -> Result<()> {
        // 10 bits carry three decimal digits.
        if bits / 10 * 3 > self.budget.digits as u64 {
            return Err(self.too_many_digits());
        }
        self.charge_cells(3 + usize::try_from(bits / 256).unwrap_or(usize::MAX))
    }

    pub(crate) fn too_many_digits(&self) -> MathError {
        exceeded("digits", self.budget.digits)
    }

    pub(crate) fn max_digits(&self) -> usize {
        self.budget.digits
    }

    /// Enters one level of nesting. The caller must leave it with [`BudgetTracker::leave_level`],
    /// but not after an error, which ends the evaluation.
    #[inline]
    pub(crate) fn enter_level(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > self.budget.depth {
            return Err(exceeded("depth", self.budget.depth));
        }
        self.charge_steps(1)
    }

    #[inline]
    pub(crate) fn leave_level(&mut self) {
        self.depth -= 1;
    }

    /// Fails if a value nests deeper than the budget allows; dropping it would recurse as deep.
    pub(crate) fn check_depth(&self, depth: usize) -> Result<()> {
        if depth > self.budget.depth {
            return Err(exceeded("depth", self.budget.depth));
        }
        Ok(())
    }
}

/// The error for an exceeded limit: the name of a [`Budget`] field and its value.
#[cold]
pub(crate) fn exceeded(limit: &'static str, max: impl std::fmt::Display) -> MathError {
    let message = match limit {
        "length" => format!("The expression is longer than {max} bytes; shorten it"),
        "nodes" => format!("The expression has more than {max} parts; shorten it"),
        "depth" => format!(
            "The expression nests deeper than {max} levels of brackets, operators or calls; split it into several statements"
        ),
        "steps" => format!("The calculation takes more than {max} steps; make it smaller"),
        "time" => format!("The calculation takes longer than {max} ms; make it smaller"),
        "cells" => format!(
            "The calculation needs more than {max} cells of memory; use smaller matrices, ranges or texts"
        ),
        "text" => format!("A text has more than {max} bytes; use shorter texts"),
        _ => format!("A number has more than {max} digits; use smaller or rounded numbers"),
    };
    MathError::exceeded(limit, message)
}

#[expect(
    clippy::disallowed_types,
    reason = "the crate is synchronous: it has no paused clock to respect, and tests set the limits instead"
)]
#[derive(Debug)]
struct BudgetClock(std::time::Instant);

#[expect(clippy::disallowed_types, reason = "see above")]
impl BudgetClock {
    fn start() -> Self {
        Self(std::time::Instant::now())
    }

    fn has_passed(&self, limit: Duration) -> bool {
        self.0.elapsed() > limit
    }
}
