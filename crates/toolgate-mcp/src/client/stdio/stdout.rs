//! A server's stdout: messages go to the inbox, everything else into quarantine.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::lines::{Ends, Line, Lines};
use super::salvage::{Marks, Part, take_apart};
use crate::client::diagnostics::Diagnostics;
use crate::client::message::Message;
use crate::client::transport::{Inbox, Lost};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Where the parts of stdout go.
pub(super) struct Stdout {
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) diagnostics: Arc<Diagnostics>,
    /// The largest message that is read, in bytes.
    pub(super) limit: usize,
}

impl Stdout {
    /// Delivers until the stream ends. Dropping the future loses nothing that was complete.
    pub(super) async fn read(self, mut from: impl AsyncRead + Unpin) {
        let mut lines = Lines::new(self.limit);
        let mut told = false;
        // Everything that is there is handled before more is asked for: answers that came together cost one read.
        while let Ok(1..) = from.read_buf(lines.space()).await {
            while let Some(line) = lines.next() {
                self.handle(line, &mut told);
            }
        }
        if let Some(line) = lines.last() {
            self.handle(line, &mut told);
        }
    }

    /// `told`: the inbox knows already that the current line is lost.
    fn handle(&self, line: Line<'_>, told: &mut bool) {
        match line {
            Line::Whole(line) => self.whole(line),
            Line::TooLong { head } => {
                let marks = Marks::of(head, b"");
                *told = marks.message && marks.id.is_some();
                if *told {
                    self.too_large(marks, self.limit as u64 + 1);
                }
            }
            Line::ThrownAway(ends) => {
                if !std::mem::take(told) {
                    self.thrown_away(&ends);
                }
            }
        }
    }

    fn whole(&self, line: &[u8]) {
        match Message::parse(line) {
            Ok(message) => self.inbox.message(message),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(refused) => match line.strip_prefix(BYTE_ORDER_MARK) {
                Some(line) => self.whole(line),
                None => {
                    for part in take_apart(line, &refused) {
                        self.part(part);
                    }
                }
            },
        }
    }

    fn part(&self, part: Part<'_>) {
        match part {
            Part::Message(message) => self.inbox.message(message),
            Part::Junk(junk, reason) => {
                self.diagnostics.quarantine(junk, junk.len() as u64);
                let marks = Marks::of(junk, junk);
                if marks.message {
                    self.inbox.lost(marks.id, Lost::Broken(reason));
                }
            }
        }
    }

    fn thrown_away(&self, ends: &Ends) {
        let marks = Marks::of(&ends.head, &ends.tail);
        if marks.message {
            self.too_large(marks, ends.bytes);
        } else {
            self.diagnostics.quarantine(&ends.head, ends.bytes);
        }
    }

    fn too_large(&self, marks: Marks, bytes: u64) {
        let limit = self.limit as u64;
        self.inbox.lost(marks.id, Lost::TooLarge { bytes, limit });
    }
}
