//! Rows that are not written yet.

use std::collections::VecDeque;

use crate::queue::{Ack, Job, MOST_BYTES, MOST_ROWS, Waits};
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
}

impl Backlog {
    /// Says how many rows there is no room for.
    pub(crate) fn add(&mut self, jobs: VecDeque<Job>) -> u64 {
        let mut lost = 0;
        for job in jobs {
            match job {
                Job::Write(row, waits) => {
                    let is_kept = self.keep(row);
                    lost += u64::from(!is_kept);
                    match waits {
                        Waits::Call(ack) => self.acks.push(ack),
                        Waits::Spooled => self.spooled += usize::from(is_kept),
                        Waits::Nobody => {}
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
        lost
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
}
