//! The rows that the writer has taken from the queue and not written yet.

use std::collections::VecDeque;

use crate::queue::{MAX_BYTES, MAX_ROWS, RowQueue, RowWaiter, WriteAck, WriterJob};
use crate::row::JournalRow;

/// Bounded like the queue, so memory stays bounded while the database can't be written.
#[derive(Default)]
pub(crate) struct RowBacklog {
    pub(crate) rows: VecDeque<JournalRow>,
    pub(crate) bytes: usize,
    // How many of the rows are in the spool too, so that they survive the end of the process.
    pub(crate) spooled: usize,
    pub(crate) acks: Vec<WriteAck>,
    pub(crate) closing: Option<WriteAck>,
    pub(crate) is_urgent: bool,
    // Empty between batches. Kept because its buffer takes as much memory as many rows.
    drained_jobs: VecDeque<WriterJob>,
}

/// The rows that the backlog had no room for.
#[derive(Default)]
pub(crate) struct BacklogOverflow {
    pub(crate) lost: u64,
    pub(crate) has_spooled: bool,
}

impl RowBacklog {
    pub(crate) fn take_from(&mut self, queue: &RowQueue) -> BacklogOverflow {
        let mut overflow = BacklogOverflow::default();
        queue.drain_into(&mut self.drained_jobs);
        while let Some(job) = self.drained_jobs.pop_front() {
            match job {
                WriterJob::Write(row, waits) => {
                    let is_kept = self.push(row);
                    match waits {
                        RowWaiter::Spooled if is_kept => self.spooled += 1,
                        RowWaiter::Spooled => overflow.has_spooled = true,
                        RowWaiter::Call(_) | RowWaiter::Unacknowledged => {
                            overflow.lost += u64::from(!is_kept);
                        }
                    }
                    // If the row is lost, the ack is dropped without a message, so that the call
                    // doesn't take it for written.
                    if let RowWaiter::Call(ack) = waits
                        && is_kept
                    {
                        self.acks.push(ack);
                    }
                }
                WriterJob::Flush(ack) => {
                    self.acks.push(ack);
                    self.is_urgent = true;
                }
                WriterJob::Close(ack) => {
                    self.closing = Some(ack);
                    self.is_urgent = true;
                }
            }
        }
        overflow
    }

    fn push(&mut self, row: JournalRow) -> bool {
        let bytes = row.bytes();
        // The same limits as the queue's: together they bound what a stuck database costs in
        // memory.
        let has_room = self.rows.len() < MAX_ROWS && self.bytes + bytes <= MAX_BYTES;
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

    pub(crate) fn recycle_into(&mut self, queue: &RowQueue) {
        queue.recycle(&mut self.rows, self.bytes);
        (self.bytes, self.spooled) = (0, 0);
    }
}
