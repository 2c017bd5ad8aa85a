//! Rows that are not written yet.

use std::collections::VecDeque;

use crate::queue::{Ack, Job, MOST_BYTES, MOST_ROWS, Queue, Waits};
use crate::row::Row;

/// Rows that wait, bounded like the queue.
#[derive(Default)]
pub(crate) struct Backlog {
    pub(crate) rows: VecDeque<Row>,
    pub(crate) bytes: usize,
    /// How many of them survive the end of the process.
    pub(crate) spooled: usize,
    pub(crate) acks: Vec<Ack>,
    pub(crate) closing: Option<Ack>,
    /// Someone wants to know now.
    pub(crate) is_urgent: bool,
    /// Empty between batches; kept because it takes as much memory as many rows.
    taken: VecDeque<Job>,
}

#[derive(Default)]
pub(crate) struct LeftOver {
    /// Those that are nowhere else.
    pub(crate) lost: u64,
    /// Some are in the spool.
    pub(crate) is_spooled: bool,
}

impl Backlog {
    pub(crate) fn take_from(&mut self, queue: &Queue) -> LeftOver {
        let mut left_over = LeftOver::default();
        queue.take_into(&mut self.taken);
        while let Some(job) = self.taken.pop_front() {
            match job {
                Job::Write(row, waits) => {
                    let is_kept = self.keep(row);
                    match waits {
                        Waits::Spooled if is_kept => self.spooled += 1,
                        Waits::Spooled => left_over.is_spooled = true,
                        Waits::Call(_) | Waits::Nobody => left_over.lost += u64::from(!is_kept),
                    }
                    // Whoever waits for a row that is lost is not told that it was written.
                    if let Waits::Call(ack) = waits
                        && is_kept
                    {
                        self.acks.push(ack);
                    }
                }
                Job::Flush(ack) => {
                    self.acks.push(ack);
                    self.is_urgent = true;
                }
                Job::Close(ack) => {
                    self.closing = Some(ack);
                    self.is_urgent = true;
                }
            }
        }
        left_over
    }

    fn keep(&mut self, row: Row) -> bool {
        let bytes = row.bytes();
        let has_room = self.rows.len() < MOST_ROWS && self.bytes + bytes <= MOST_BYTES;
        if has_room {
            self.bytes += bytes;
            self.rows.push_back(row);
        }
        has_room
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        (self.bytes, self.spooled) = (0, 0);
    }

    pub(crate) fn clear_into(&mut self, queue: &Queue) {
        queue.give_back(&mut self.rows, self.bytes);
        (self.bytes, self.spooled) = (0, 0);
    }
}
