//! Asks questions at the terminal. A question can be abandoned without losing what is typed next.

use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::output;
use crate::spinner::Spinner;
use crate::terminal::{self, EchoRequest};

// One reader at a time: two would take each other's answers.
static TERMINAL_LOCK: LazyLock<Arc<Mutex<()>>> = LazyLock::new(Arc::default);

/// Runs `question` on a thread of its own. If the caller goes away, its next line is `None`, and
/// what the person types goes to the next reader.
pub(crate) async fn ask<T: Send + 'static>(
    spinner: &Spinner,
    question: impl FnOnce(&mut dyn FnMut() -> Option<String>) -> T + Send + 'static,
) -> Option<T> {
    let turn = lock_terminal().await;
    let _held = spinner.pause();
    let cancelled = QuestionGuard(Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&cancelled.0);
    let asked = tokio::task::spawn_blocking(move || {
        // The next reader waits until this thread has stopped reading.
        let _turn = turn;
        // A person wants to see what they answer, even if typing is hidden otherwise.
        let _seen = EchoRequest::shown();
        discard_typed_ahead();
        question(&mut || read_line_unless_cancelled(&flag))
    });
    asked.await.ok()
}

pub(crate) async fn next_line() -> Option<String> {
    loop {
        let turn = lock_terminal().await;
        let looking = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            has_input().then(read)
        });
        match looking.await {
            Ok(Some(line)) => return line,
            Ok(None) => {}
            Err(_) => return None,
        }
    }
}

pub(crate) async fn lock_terminal() -> OwnedMutexGuard<()> {
    Arc::clone(&TERMINAL_LOCK).lock_owned().await
}

/// Discards what was typed ahead, which can't be an answer to the next question.
fn discard_typed_ahead() {
    // Fails for a pipe, which has no type-ahead.
    let _no_terminal = tcflush(terminal::keyboard(), QueueSelector::IFlush);
}

struct QuestionGuard(Arc<AtomicBool>);

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn read_line_unless_cancelled(cancelled: &AtomicBool) -> Option<String> {
    while !has_input() {
        if cancelled.load(Ordering::Relaxed) {
            return None;
        }
    }
    // What was typed just now is for the next reader.
    match cancelled.load(Ordering::Relaxed) {
        true => None,
        false => read(),
    }
}

fn has_input() -> bool {
    const POLL_INTERVAL: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    let keyboard = terminal::keyboard();
    let mut sources = [PollFd::new(&keyboard, PollFlags::IN)];
    // If polling fails, reading will tell why.
    !matches!(
        poll(&mut sources, Some(&POLL_INTERVAL)),
        Ok(0) | Err(rustix::io::Errno::INTR)
    )
}

// A terminal delivers one line at a time, so the buffer holds this one and nothing behind it.
fn read() -> Option<String> {
    let mut line = String::new();
    let read = match terminal::tty() {
        Some(tty) => BufReader::new(tty).read_line(&mut line),
        None => std::io::stdin().lock().read_line(&mut line),
    };
    match read {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}

pub(crate) fn confirm(question: &str) -> bool {
    discard_typed_ahead();
    output::print_to_stderr(question);
    is_yes(read_line_unless_cancelled(&AtomicBool::new(false)).as_deref())
}

pub(crate) fn is_yes(answer: Option<&str>) -> bool {
    answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}
