//! Something to look at while a call lasts.

use std::convert::Infallible;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolgate_core::Progress;

/// Shorter calls need no spinner.
const PATIENCE: Duration = Duration::from_millis(300);
const TURN: Duration = Duration::from_millis(100);
const FRAMES: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠇', '⠏', '⠛'];

/// A line on stderr with the elapsed time. On anything but a terminal it draws nothing. Clones are the same spinner.
#[derive(Clone)]
pub(crate) struct Spinner(Arc<Mutex<Line>>);

struct Line {
    title: String,
    message: String,
    hidden: bool,
}

impl Spinner {
    pub(crate) fn new(title: &str) -> Self {
        let hidden = !std::io::stderr().is_terminal();
        Self(Arc::new(Mutex::new(Line {
            title: toolgate_core::escape(title),
            message: String::new(),
            hidden,
        })))
    }

    /// Turns, once the call has lasted a little, for as long as it is polled.
    pub(crate) async fn turn(&self) -> Infallible {
        let started = Instant::now();
        tokio::time::sleep(PATIENCE).await;
        for frame in FRAMES.iter().cycle() {
            self.line().draw(*frame, started.elapsed());
            tokio::time::sleep(TURN).await;
        }
        std::future::pending().await
    }

    /// Shows what the tool says of its progress.
    pub(crate) fn show(&self, progress: &Progress) {
        const LONGEST: usize = 50;
        let share = progress
            .total
            .map(|total| format!("{}/{total} ", progress.done))
            .unwrap_or_default();
        let message = toolgate_core::escape(progress.message.as_deref().unwrap_or_default());
        self.line().message = format!(
            "{share}{}",
            message.chars().take(LONGEST).collect::<String>()
        );
    }

    /// Gives the line back and stays away: for a question, or for good.
    pub(crate) fn hide(&self) {
        let mut line = self.line();
        line.write("");
        line.hidden = true;
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn draw(&self, frame: char, elapsed: Duration) {
        self.write(&format!(
            "{frame} {} {:.1} s {}",
            self.title,
            elapsed.as_secs_f64(),
            self.message
        ));
    }

    /// Replaces the line. If stderr is gone, nobody looks.
    fn write(&self, text: &str) {
        if !self.hidden {
            let mut err = std::io::stderr().lock();
            drop(write!(err, "\r\x1b[2K{text}").and_then(|()| err.flush()));
        }
    }
}
