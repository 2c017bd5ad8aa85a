//! The thread that prints and draws: whoever has something to tell never waits for whoever reads it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::time::Instant;

use super::line::Line;
use crate::say;
use crate::spinner::{self, Spinner, TURN};

/// What nobody reads is not kept for ever.
const MOST_UNSAID: usize = 1000;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Line(String),
    Result(String),
    Record(String),
    Info(String),
}

impl Said {
    fn tell(self) {
        match self {
            Self::Line(text) => say::line(&text),
            Self::Result(text) => say::text(&text),
            Self::Record(text) => say::result(&text),
            Self::Info(text) => tracing::info!("{text}"),
        }
    }
}

/// What is to be told and drawn. Clones are the same.
#[derive(Clone)]
pub(super) struct Canvas(Arc<Shared>);

struct Shared {
    draws: bool,
    /// Stays away while a question is asked, and so does all of this.
    spinner: Spinner,
    sheet: Mutex<Sheet>,
    changed: Condvar,
}

struct Sheet {
    line: Line,
    unsaid: VecDeque<Said>,
    closed: bool,
}

pub(super) struct Painter {
    canvas: Canvas,
    thread: JoinHandle<()>,
}

impl Canvas {
    pub(super) fn new(line: Line, draws: bool, spinner: Spinner) -> Self {
        let sheet = Sheet {
            line,
            unsaid: VecDeque::new(),
            closed: false,
        };
        Self(Arc::new(Shared {
            draws,
            spinner,
            sheet: Mutex::new(sheet),
            changed: Condvar::new(),
        }))
    }

    pub(super) fn say(&self, said: Said) {
        let mut sheet = self.sheet();
        if sheet.unsaid.len() == MOST_UNSAID {
            sheet.unsaid.pop_front();
        }
        sheet.unsaid.push_back(said);
        drop(sheet);
        self.0.changed.notify_all();
    }

    pub(super) fn line(&self, change: impl FnOnce(&mut Line)) {
        change(&mut self.sheet().line);
    }

    pub(super) fn paint(&self) -> Painter {
        let canvas = self.clone();
        Painter {
            canvas: self.clone(),
            thread: std::thread::spawn(move || while canvas.tell_next() {}),
        }
    }

    /// Tells what there is and draws what has changed; false once it is closed and all is told.
    fn tell_next(&self) -> bool {
        let Shared { draws, spinner, .. } = &*self.0;
        let mut sheet = self.sheet();
        let closed = sheet.closed;
        // A question must stay the last thing that is seen.
        let is_quiet = spinner.is_paused() && !closed;
        let unsaid = match is_quiet {
            true => VecDeque::new(),
            false => std::mem::take(&mut sheet.unsaid),
        };
        let is_drawn = *draws && !is_quiet && !closed;
        let lines = is_drawn.then(|| sheet.line.drawn(spinner::width(), Instant::now()));
        drop(sheet);
        for said in unsaid {
            said.tell();
        }
        if let Some(lines) = lines {
            spinner::draw(&lines);
        }
        match closed {
            true => spinner::clear_line(),
            false => self.wait(*draws || is_quiet),
        }
        !closed
    }

    /// Until there is something new, or the next picture is due.
    fn wait(&self, is_moving: bool) {
        let mut sheet = self.sheet();
        if sheet.closed {
            return;
        }
        if is_moving {
            self.0.changed.wait_for(&mut sheet, TURN);
        } else if sheet.unsaid.is_empty() {
            self.0.changed.wait(&mut sheet);
        }
    }

    fn sheet(&self) -> MutexGuard<'_, Sheet> {
        self.0.sheet.lock()
    }

    #[cfg(test)]
    pub(super) fn unsaid(&self) -> Vec<Said> {
        self.sheet().unsaid.drain(..).collect()
    }
}

impl Painter {
    /// Tells the rest, and leaves nothing half drawn.
    pub(super) fn close(self) {
        self.canvas.sheet().closed = true;
        self.canvas.0.changed.notify_all();
        // One that panicked has nothing more to tell.
        drop(self.thread.join());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_who_does_not_read_holds_nobody_up_and_costs_little() {
        let canvas = Canvas::new(
            Line::new("Enter", false, Instant::now()),
            false,
            Spinner::new(""),
        );
        for number in 0..2 * MOST_UNSAID {
            canvas.say(Said::Info(number.to_string()));
        }
        let unsaid = canvas.unsaid();
        assert_eq!(unsaid.len(), MOST_UNSAID);
        assert_eq!(unsaid[0], Said::Info(MOST_UNSAID.to_string()));
    }

    #[tokio::test]
    async fn while_a_question_is_asked_nothing_is_told_until_the_end() {
        let spinner = Spinner::new("");
        let canvas = Canvas::new(
            Line::new("Enter", false, Instant::now()),
            false,
            spinner.clone(),
        );
        let held = spinner.hold();
        canvas.say(Said::Info("later".to_owned()));
        assert!(canvas.tell_next(), "it goes on");
        assert_eq!(canvas.sheet().unsaid.len(), 1);
        drop(held);
        let painter = canvas.paint();
        canvas.say(Said::Info("last".to_owned()));
        painter.close();
        assert_eq!(canvas.unsaid(), []);
    }
}
