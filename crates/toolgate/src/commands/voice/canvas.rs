//! Prints and draws on its own thread, so that a slow reader never blocks the gateway.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use tokio::time::Instant;

use super::live_line::LiveLine;
use crate::output;
use crate::spinner::{self, FRAME_INTERVAL, Spinner};

// Bounds the backlog if stdout or stderr isn't read.
const MAX_PENDING: usize = 1000;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum VoiceOutput {
    Line(String),
    Result(String),
    Record(String),
    Info(String),
}

impl VoiceOutput {
    fn print(self) {
        match self {
            Self::Line(text) => output::print_to_stderr(&text),
            Self::Result(text) => output::print_text(&text),
            Self::Record(text) => output::print_result(&text),
            Self::Info(text) => tracing::info!("{text}"),
        }
    }
}

/// What is to be printed and drawn. Clones share it.
#[derive(Clone)]
pub(super) struct VoiceCanvas(Arc<CanvasState>);

struct CanvasState {
    draws: bool,
    spinner: Spinner,
    content: Mutex<CanvasContent>,
    changed: Condvar,
}

struct CanvasContent {
    line: LiveLine,
    pending: VecDeque<VoiceOutput>,
    closed: bool,
}

pub(super) struct CanvasPainter {
    canvas: VoiceCanvas,
    thread: JoinHandle<()>,
}

impl VoiceCanvas {
    pub(super) fn new(line: LiveLine, draws: bool, spinner: Spinner) -> Self {
        let content = CanvasContent {
            line,
            pending: VecDeque::new(),
            closed: false,
        };
        Self(Arc::new(CanvasState {
            draws,
            spinner,
            content: Mutex::new(content),
            changed: Condvar::new(),
        }))
    }

    pub(super) fn push(&self, output: VoiceOutput) {
        let mut content = self.0.content.lock();
        if content.pending.len() == MAX_PENDING {
            content.pending.pop_front();
        }
        content.pending.push_back(output);
        drop(content);
        self.0.changed.notify_all();
    }

    pub(super) fn line(&self, change: impl FnOnce(&mut LiveLine)) {
        change(&mut self.0.content.lock().line);
    }

    pub(super) fn paint(&self) -> CanvasPainter {
        let canvas = self.clone();
        CanvasPainter {
            canvas: self.clone(),
            thread: std::thread::spawn(move || while canvas.print_next() {}),
        }
    }

    fn print_next(&self) -> bool {
        let CanvasState { draws, spinner, .. } = &*self.0;
        let mut content = self.0.content.lock();
        let closed = content.closed;
        // A question must stay the last thing on the screen.
        let is_quiet = spinner.is_paused() && !closed;
        let pending = match is_quiet {
            true => VecDeque::new(),
            false => std::mem::take(&mut content.pending),
        };
        let is_drawn = *draws && !is_quiet && !closed;
        let lines = is_drawn.then(|| content.line.draw(spinner::width(), Instant::now()));
        drop(content);
        for output in pending {
            output.print();
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

    fn wait(&self, is_moving: bool) {
        let mut content = self.0.content.lock();
        if content.closed {
            return;
        }
        if is_moving {
            self.0.changed.wait_for(&mut content, FRAME_INTERVAL);
        } else if content.pending.is_empty() {
            self.0.changed.wait(&mut content);
        }
    }

    #[cfg(test)]
    pub(super) fn take_pending(&self) -> Vec<VoiceOutput> {
        self.0.content.lock().pending.drain(..).collect()
    }
}

impl CanvasPainter {
    pub(super) fn close(self) {
        self.canvas.0.content.lock().closed = true;
        self.canvas.0.changed.notify_all();
        // If the thread panicked, there is nothing left to print.
        drop(self.thread.join());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_reader_blocks_nobody() {
        let canvas = VoiceCanvas::new(
            LiveLine::new("Enter", false, Instant::now()),
            false,
            Spinner::new(""),
        );
        for number in 0..2 * MAX_PENDING {
            canvas.push(VoiceOutput::Info(number.to_string()));
        }
        let pending = canvas.take_pending();
        assert_eq!(pending.len(), MAX_PENDING);
        assert_eq!(pending[0], VoiceOutput::Info(MAX_PENDING.to_string()));
    }

    #[tokio::test]
    async fn nothing_is_printed_while_a_question_is_open() {
        let spinner = Spinner::new("");
        let canvas = VoiceCanvas::new(
            LiveLine::new("Enter", false, Instant::now()),
            false,
            spinner.clone(),
        );
        let held = spinner.pause();
        canvas.push(VoiceOutput::Info("later".to_owned()));
        assert!(canvas.print_next(), "it goes on");
        assert_eq!(canvas.0.content.lock().pending.len(), 1);
        drop(held);
        let painter = canvas.paint();
        canvas.push(VoiceOutput::Info("last".to_owned()));
        painter.close();
        assert_eq!(canvas.take_pending(), []);
    }
}
