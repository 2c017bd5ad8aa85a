//! What one evaluation may use, and the meter that counts it.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::value::Value;

/// The limits of one evaluation. Each exceeded one is an error that names it.
///
/// ```
/// use toolgate_math::{Budget, evaluate};
///
/// let small = Budget { cells: 1000, ..Budget::default() };
/// let error = evaluate("ones(100, 100)", &small).expect_err("ten times too many");
/// assert_eq!(error.limit(), Some("cells"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of the expression.
    pub length: usize,
    /// Nested brackets, operators, calls, and values in values. Every level costs stack: the default fits a thread with 256 KiB.
    pub depth: usize,
    /// Nodes of the parsed expression.
    pub nodes: usize,
    /// Operations, counted in every loop.
    pub steps: u64,
    /// Matrix cells, object entries and pieces of text made over the whole evaluation, about 32 bytes each.
    pub cells: usize,
    /// Decimal digits of one big number or fraction.
    pub digits: usize,
    /// Bytes of one text that the expression makes.
    pub text: usize,
    /// Wall time, looked at every few hundred steps.
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
pub(crate) struct Meter {
    steps: u64,
    next_look: u64,
    cells: usize,
    depth: usize,
    deadline: Option<Clock>,
    budget: Budget,
}

/// How many steps pass between two looks at the clock.
const LOOK_EVERY: u64 = 512;

impl Meter {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self {
            steps: 0,
            next_look: LOOK_EVERY,
            cells: 0,
            depth: 0,
            deadline: None,
            budget: *budget,
        }
    }

    /// For writing an answer: half the time that computing it had.
    pub(crate) fn for_output(budget: &Budget) -> Self {
        let mut meter = Self::new(budget);
        meter.budget.time /= 2;
        // The answer as a whole is as long as its cells allow; no expression works on it any more.
        meter.budget.text = usize::MAX;
        meter
    }

    #[inline]
    pub(crate) fn step(&mut self, n: usize) -> Result<()> {
        self.steps += n as u64;
        if self.steps < self.next_look {
            return Ok(());
        }
        self.look()
    }

    #[cold]
    fn look(&mut self) -> Result<()> {
        self.next_look = self.steps + LOOK_EVERY;
        if self.steps > self.budget.steps {
            return Err(Error::exceeded(
                "steps",
                format!(
                    "The calculation takes more than {} steps; make it smaller",
                    self.budget.steps
                ),
            ));
        }
        // The clock starts with the first look: short expressions never ask for the time at all.
        let clock = self.deadline.get_or_insert_with(Clock::start);
        if clock.passed(self.budget.time) {
            return Err(Error::exceeded(
                "time",
                format!(
                    "The calculation takes longer than {} ms; make it smaller",
                    self.budget.time.as_millis()
                ),
            ));
        }
        Ok(())
    }

    /// Counts the work on one cell, beyond the step its making costs: anything but a plain number takes longer.
    #[inline]
    pub(crate) fn work(&mut self, cell: &Value) -> Result<()> {
        match cell {
            Value::Number(_) | Value::Bool(_) | Value::Null => Ok(()),
            _ => self.step(8),
        }
    }

    /// Counts `n` new cells of about 32 bytes, before they are made.
    pub(crate) fn cells(&mut self, n: usize) -> Result<()> {
        self.cells = self.cells.saturating_add(n);
        if self.cells > self.budget.cells {
            return Err(Error::exceeded(
                "cells",
                format!(
                    "The calculation needs more than {} cells of memory; use smaller matrices, ranges or texts",
                    self.budget.cells
                ),
            ));
        }
        self.step(n)
    }

    /// Counts a new text of `bytes` bytes, before it is made.
    pub(crate) fn text(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.budget.text {
            return Err(Error::exceeded(
                "text",
                format!(
                    "A text has more than {} bytes; use shorter texts",
                    self.budget.text
                ),
            ));
        }
        self.cells(bytes / 32 + 1)
    }

    /// Counts a new big number or fraction of `bits` bits.
    pub(crate) fn big(&mut self, bits: u64) -> Result<()> {
        // 10 bits carry three decimal digits.
        if bits / 10 * 3 > self.budget.digits as u64 {
            return Err(self.too_many_digits());
        }
        self.cells(3 + usize::try_from(bits / 256).unwrap_or(usize::MAX))
    }

    pub(crate) fn too_many_digits(&self) -> Error {
        Error::exceeded(
            "digits",
            format!(
                "A number has more than {} digits; use smaller or rounded numbers",
                self.budget.digits
            ),
        )
    }

    pub(crate) fn digits(&self) -> usize {
        self.budget.digits
    }

    /// Enters one level of nesting; [`Meter::leave`] leaves it.
    #[inline]
    pub(crate) fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > self.budget.depth {
            return Err(too_deep(self.budget.depth));
        }
        self.step(1)
    }

    #[inline]
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Fails if a value nests deeper than the budget allows; dropping it would recurse as deep.
    pub(crate) fn nested(&self, depth: usize) -> Result<()> {
        if depth > self.budget.depth {
            return Err(too_deep(self.budget.depth));
        }
        Ok(())
    }
}

pub(crate) fn too_deep(depth: usize) -> Error {
    Error::exceeded(
        "depth",
        format!(
            "The expression nests deeper than {depth} levels of brackets, operators or calls; split it into several statements"
        ),
    )
}

#[expect(
    clippy::disallowed_types,
    reason = "the crate is synchronous: there is no paused clock to respect, and tests set the limits instead"
)]
#[derive(Debug)]
struct Clock(std::time::Instant);

#[expect(clippy::disallowed_types, reason = "see above")]
impl Clock {
    fn start() -> Self {
        Self(std::time::Instant::now())
    }

    fn passed(&self, limit: Duration) -> bool {
        self.0.elapsed() > limit
    }
}
