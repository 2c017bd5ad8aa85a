//! Something to look at while a call lasts.

use std::convert::Infallible;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolgate_core::Progress;
use unicode_width::UnicodeWidthChar;

use crate::wrap::seen;

/// Shorter calls need no spinner.
pub(crate) const PATIENCE: Duration = Duration::from_millis(300);
pub(crate) const TURN: Duration = Duration::from_millis(100);
pub(crate) const FRAMES: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠇', '⠏', '⠛'];

/// How wide the lines at the end of the terminal are that are ours to take back.
static DRAWN: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// A line on stderr with the elapsed time. On anything but a terminal it draws nothing. Clones are the same spinner.
#[derive(Clone)]
pub(crate) struct Spinner(Arc<Mutex<Line>>);

pub(crate) struct Held(Spinner);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.line().held -= 1;
    }
}

struct Line {
    title: String,
    message: String,
    /// How many questions keep it away; the next may begin before the one before has gone.
    held: usize,
}

/// Gives the last lines back, for whoever has something to say.
pub(crate) fn clear_line() {
    let taken_back = taken_back();
    if !taken_back.is_empty() {
        // If stderr is gone, nobody looks.
        drop(std::io::stderr().write_all(taken_back.as_bytes()));
    }
}

/// Leaves the last lines where they are: others have written below them.
pub(crate) fn leave_drawn() {
    let mut drawn = DRAWN.lock();
    drawn.clear();
}

fn taken_back() -> String {
    let mut drawn = DRAWN.lock();
    match rows(&std::mem::take(&mut *drawn), width() + 1) {
        0 => String::new(),
        rows => format!("\r\x1b[2K{}", "\x1b[1A\x1b[2K".repeat(rows - 1)),
    }
}

/// How many rows lines take that were drawn when the terminal was as wide or wider: it breaks those that do not fit any more.
fn rows(lines: &[usize], columns: usize) -> usize {
    let rows = lines.iter().map(|width| width.div_ceil(columns).max(1));
    rows.sum()
}

/// Draws the end of a text, as much of it as the terminal has room for: what has left the screen can't be taken back.
pub(crate) fn draw_end(text: &str) {
    let rows = terminal_size::terminal_size_of(std::io::stderr())
        .map_or(24, |(_, height)| usize::from(height.0));
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let first = lines.len().saturating_sub(rows.saturating_sub(2).max(1));
    draw(lines.get(first..).unwrap_or_default());
}

/// Draws lines in the place of those that were drawn last; each is cut to the width of the terminal. Where one has to be cut, it
/// loses its colours.
pub(crate) fn draw(lines: &[String]) {
    let width = width();
    let lines = lines.iter().map(|line| match seen(line) <= width {
        true => line.clone(),
        false => fitting(&anstream::adapter::strip_str(line).to_string(), width).to_owned(),
    });
    let lines: Vec<String> = lines.collect();
    let mut err = std::io::stderr().lock();
    let text = format!("{}{}", taken_back(), lines.join("\n"));
    drop(err.write_all(text.as_bytes()).and_then(|()| err.flush()));
    let mut drawn = DRAWN.lock();
    *drawn = lines.iter().map(|line| seen(line)).collect();
}

/// How wide a line may be. One column stays free: a line that wraps could not be taken back.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr())
        .map_or(80, |(width, _)| usize::from(width.0))
        .saturating_sub(1)
}

/// True where lines can be drawn and taken back: a person looks, at a terminal that can do that.
pub(crate) fn can_draw() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !is_dumb && std::io::stderr().is_terminal()
}

/// As much of a text as fits; some characters are two columns wide.
pub(crate) fn fitting(text: &str, width: usize) -> &str {
    let mut columns = 0;
    let mut ends = text.char_indices().filter(|(_, c)| {
        columns += c.width().unwrap_or(0);
        columns > width
    });
    ends.next().map_or(text, |(end, _)| &text[..end])
}

impl Spinner {
    pub(crate) fn new(title: &str) -> Self {
        let line = Line {
            title: toolgate_core::escape(title),
            message: String::new(),
            held: 0,
        };
        Self(Arc::new(Mutex::new(line)))
    }

    /// Turns, once the call has lasted a little, for as long as it is polled.
    pub(crate) async fn turn(&self) -> Infallible {
        let started = Instant::now();
        if !can_draw() {
            return std::future::pending().await;
        }
        tokio::time::sleep(PATIENCE).await;
        for frame in FRAMES.iter().cycle() {
            self.line().draw(*frame, started.elapsed());
            tokio::time::sleep(TURN).await;
        }
        std::future::pending().await
    }

    pub(crate) fn show(&self, progress: &Progress) {
        let share = progress
            .total
            .map(|total| format!("{}/{total} ", progress.done))
            .unwrap_or_default();
        let message = toolgate_core::escape(progress.message.as_deref().unwrap_or_default());
        self.line().message = format!("{share}{message}");
    }

    pub(crate) fn say(&self, message: &str) {
        self.line().message = toolgate_core::escape(message);
    }

    pub(crate) fn title(&self, title: &str) {
        self.line().title = toolgate_core::escape(title);
    }

    /// Stays away while a question is asked, until what is given back is dropped.
    pub(crate) fn hold(&self) -> Held {
        self.line().held += 1;
        Held(self.clone())
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.line().held > 0
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock()
    }
}

impl Line {
    fn draw(&self, frame: char, elapsed: Duration) {
        if self.held > 0 {
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
    use super::{fitting, rows};

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
            assert_eq!(fitting(text, width), expected);
        }
    }

    #[test]
    fn lines_that_a_narrower_terminal_breaks_are_taken_back_whole() {
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
