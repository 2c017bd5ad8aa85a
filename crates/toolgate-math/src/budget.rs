//! The limits of an evaluation, and the meter that counts against them.

use std::time::Duration;

use crate::error::{MathError, Result};
use crate::value::Value;

/// The limits of one evaluation. Exceeding one is an error that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The length of the expression in bytes.
    pub length: usize,
    /// Nesting of brackets, operators, calls, and values in values. Every level costs stack; the
    /// default fits a thread with 256 KiB.
    pub depth: usize,
    /// The number of nodes of the parsed expression.
    pub nodes: usize,
    /// Operations, counted in every loop.
    pub steps: u64,
    /// Matrix cells, object entries and pieces of text made in the whole evaluation. Each
    /// takes about 32 bytes.
    pub cells: usize,
    /// Decimal digits of one big number or fraction.
    pub digits: usize,
    /// The length in bytes of one text that the expression makes.
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
pub(crate) struct Meter {
    steps: u64,
    next_look: u64,
    cells: usize,
    depth: usize,
    deadline: Option<MeterClock>,
    budget: Budget,
}

// Steps between two checks of the clock, because reading it costs more than a step.
const STEPS_PER_CLOCK_CHECK: u64 = 512;

impl Meter {
    pub(crate) fn new(budget: &Budget) -> Self {
        Self {
            steps: 0,
            next_look: STEPS_PER_CLOCK_CHECK,
            cells: 0,
            depth: 0,
            deadline: None,
            budget: *budget,
        }
    }

    // Writing an answer gets half the time that computing it had.
    pub(crate) fn for_output(budget: &Budget) -> Self {
        let mut meter = Self::new(budget);
        meter.budget.time /= 2;
        // The number of cells bounds the whole answer, and no expression works on
        // its text any more.
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
        self.next_look = self.steps + STEPS_PER_CLOCK_CHECK;
        if self.steps > self.budget.steps {
            return Err(exceeded("steps", self.budget.steps));
        }
        // Started at the first check, so short expressions never read the clock at all.
        let clock = self.deadline.get_or_insert_with(MeterClock::start);
        if clock.passed(self.budget.time) {
            return Err(exceeded("time", self.budget.time.as_millis()));
        }
        Ok(())
    }

    // Only plain numbers are cheap: anything else costs more than the step that making it costs.
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
            return Err(exceeded("cells", self.budget.cells));
        }
        self.step(n)
    }

    /// Counts a new text of `bytes` bytes, before it is made.
    pub(crate) fn text(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.budget.text {
            return Err(exceeded("text", self.budget.text));
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

    pub(crate) fn too_many_digits(&self) -> MathError {
        exceeded("digits", self.budget.digits)
    }

    pub(crate) fn digits(&self) -> usize {
        self.budget.digits
    }

    /// Enters one level of nesting; [`Meter::leave`] leaves it.
    #[inline]
    pub(crate) fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > self.budget.depth {
            return Err(exceeded("depth", self.budget.depth));
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
            return Err(exceeded("depth", self.budget.depth));
        }
        Ok(())
    }
}

/// The error for a limit that is used up.
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
struct MeterClock(std::time::Instant);

#[expect(clippy::disallowed_types, reason = "see above")]
impl MeterClock {
    fn start() -> Self {
        Self(std::time::Instant::now())
    }

    fn passed(&self, limit: Duration) -> bool {
        self.0.elapsed() > limit
    }
}
