//! Draws and erases spinner lines on stderr.

use std::convert::Infallible;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use toolgate_core::Progress;
use unicode_width::UnicodeWidthChar;

use crate::wrap::display_width;

// Shorter calls need no spinner.
pub(crate) const SPINNER_DELAY: Duration = Duration::from_millis(300);
pub(crate) const FRAME_INTERVAL: Duration = Duration::from_millis(100);
pub(crate) const FRAMES: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠇', '⠏', '⠛'];

// Widths of the last lines on the terminal, which we drew and may erase.
static DRAWN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// A line on stderr with the elapsed time. Draws nothing unless stderr is a terminal.
/// Clones share the line.
#[derive(Clone)]
pub(crate) struct Spinner(Arc<Mutex<SpinnerState>>);

pub(crate) struct SpinnerPause(Spinner);

impl Drop for SpinnerPause {
    fn drop(&mut self) {
        self.0.0.lock().pauses -= 1;
    }
}

struct SpinnerState {
    title: String,
    message: String,
    pauses: usize,
}

pub(crate) fn clear_line() {
    let taken_back = erase_sequence();
    if !taken_back.is_empty() {
        // If stderr is closed, there is nothing to erase.
        drop(std::io::stderr().write_all(taken_back.as_bytes()));
    }
}

/// Leaves the drawn lines, because others have written below them.
pub(crate) fn forget_drawn() {
    let mut drawn = DRAWN.lock();
    drawn.clear();
}

fn erase_sequence() -> String {
    let mut drawn = DRAWN.lock();
    match rows(&std::mem::take(&mut *drawn), width() + 1) {
        0 => String::new(),
        rows => format!("\r\x1b[2K{}", "\x1b[1A\x1b[2K".repeat(rows - 1)),
    }
}

/// How many rows the drawn lines take now. A terminal that became narrower has wrapped them.
fn rows(lines: &[usize], columns: usize) -> usize {
    let rows = lines.iter().map(|width| width.div_ceil(columns).max(1));
    rows.sum()
}

/// Draws the end of a text, as much as fits the screen: what has scrolled off it can't be erased.
pub(crate) fn draw_tail(text: &str) {
    let rows = terminal_size::terminal_size_of(std::io::stderr())
        .map_or(24, |(_, height)| usize::from(height.0));
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let first = lines.len().saturating_sub(rows.saturating_sub(2).max(1));
    draw(lines.get(first..).unwrap_or_default());
}

pub(crate) fn draw(lines: &[String]) {
    let width = width();
    let lines = lines.iter().map(|line| match display_width(line) <= width {
        true => line.clone(),
        false => {
            truncate_to_width(&anstream::adapter::strip_str(line).to_string(), width).to_owned()
        }
    });
    let lines: Vec<String> = lines.collect();
    let mut err = std::io::stderr().lock();
    let text = format!("{}{}", erase_sequence(), lines.join("\n"));
    drop(err.write_all(text.as_bytes()).and_then(|()| err.flush()));
    let mut drawn = DRAWN.lock();
    *drawn = lines.iter().map(|line| display_width(line)).collect();
}

/// Columns of a line. One stays free, because a line that wraps couldn't be erased.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr())
        .map_or(80, |(width, _)| usize::from(width.0))
        .saturating_sub(1)
}

/// True if stderr is a terminal that can erase lines.
pub(crate) fn can_draw() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !is_dumb && std::io::stderr().is_terminal()
}

pub(crate) fn truncate_to_width(text: &str, width: usize) -> &str {
    let mut columns = 0;
    let mut ends = text.char_indices().filter(|(_, c)| {
        columns += c.width().unwrap_or(0);
        columns > width
    });
    ends.next().map_or(text, |(end, _)| &text[..end])
}

impl Spinner {
    pub(crate) fn new(title: &str) -> Self {
        let line = SpinnerState {
            title: toolgate_core::text::escape(title),
            message: String::new(),
            pauses: 0,
        };
        Self(Arc::new(Mutex::new(line)))
    }

    /// Turns while it is polled, after a short delay.
    pub(crate) async fn animate(&self) -> Infallible {
        let started = Instant::now();
        if !can_draw() {
            return std::future::pending().await;
        }
        tokio::time::sleep(SPINNER_DELAY).await;
        for frame in FRAMES.iter().cycle() {
            self.0.lock().draw(*frame, started.elapsed());
            tokio::time::sleep(FRAME_INTERVAL).await;
        }
        std::future::pending().await
    }

    pub(crate) async fn run_during<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            never = self.animate() => match never {},
        }
    }

    pub(crate) fn show_progress(&self, progress: &Progress) {
        let share = progress
            .total
            .map(|total| format!("{}/{total} ", progress.done))
            .unwrap_or_default();
        let message = toolgate_core::text::escape(progress.message.as_deref().unwrap_or_default());
        self.0.lock().message = format!("{share}{message}");
    }

    pub(crate) fn set_message(&self, message: &str) {
        self.0.lock().message = toolgate_core::text::escape(message);
    }

    pub(crate) fn set_title(&self, title: &str) {
        self.0.lock().title = toolgate_core::text::escape(title);
    }

    pub(crate) fn pause(&self) -> SpinnerPause {
        self.0.lock().pauses += 1;
        SpinnerPause(self.clone())
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.0.lock().pauses > 0
    }
}

impl SpinnerState {
    fn draw(&self, frame: char, elapsed: Duration) {
        if self.pauses > 0 {
            return;
        }
        let text = format!(
            "{frame} {} {:.1} s {}",
            self.title,
            elapsed.as_secs_f64(),
            self.message
        );
        draw(&[text]);
    }
}

#[cfg(test)]
mod tests {
    use super::{rows, truncate_to_width};

    #[test]
    fn a_line_is_cut_by_columns() {
        for (text, width, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "abc"),
            ("日本語", 3, "日"),
            ("日本語", 4, "日本"),
            ("", 0, ""),
            ("a", 0, ""),
        ] {
            assert_eq!(truncate_to_width(text, width), expected);
        }
    }

    #[test]
    fn wrapped_lines_are_erased_whole() {
        for (lines, columns, expected) in [
            (&[][..], 80, 0),
            (&[0], 80, 1),
            (&[56, 28], 80, 2),
            (&[56, 28], 40, 3),
            (&[80, 81], 40, 5),
            (&[5], 1, 5),
        ] {
            assert_eq!(rows(lines, columns), expected, "{lines:?}");
        }
    }
}
