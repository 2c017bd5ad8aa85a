//! Answers of the person at the terminal, read so that nobody has to wait for them for ever.

use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::spinner::Spinner;
use crate::terminal::{self, Echo};

/// One reader at a time: two that wait for the same line would get each other's answers.
static TURN: LazyLock<Arc<Mutex<()>>> = LazyLock::new(Arc::default);

/// Runs what asks and reads at the terminal on a thread of its own. If nobody waits for it any more, its next line is `None`
/// and what the person types belongs to somebody else.
pub(crate) async fn ask<T: Send + 'static>(
    spinner: &Spinner,
    question: impl FnOnce(&mut dyn FnMut() -> Option<String>) -> T + Send + 'static,
) -> Option<T> {
    let turn = turn().await;
    let _held = spinner.hold();
    let called_off = CalledOff(Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&called_off.0);
    let asked = tokio::task::spawn_blocking(move || {
        // Whoever reads next waits until this thread has stopped reading.
        let _turn = turn;
        // Whoever answers wants to see what they type, also where nobody else does.
        let _seen = Echo::shown();
        forget_typed();
        question(&mut || line(&flag))
    });
    asked.await.ok()
}

/// The next line that is typed while no question is asked; `None` at the end of them. Questions go first.
pub(crate) async fn typed() -> Option<String> {
    loop {
        let turn = turn().await;
        let looking = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            is_typed().then(read)
        });
        match looking.await {
            Ok(Some(line)) => return line,
            Ok(None) => {}
            Err(_) => return None,
        }
    }
}

/// Keeps all questions away from the terminal for as long as it is held.
pub(crate) async fn turn() -> OwnedMutexGuard<()> {
    Arc::clone(&TURN).lock_owned().await
}

/// Takes away what was typed before a question was asked: it can not be the answer to it.
pub(crate) fn forget_typed() {
    // A pipe has nothing typed in it.
    let _no_terminal = tcflush(terminal::keyboard(), QueueSelector::IFlush);
}

struct CalledOff(Arc<AtomicBool>);

impl Drop for CalledOff {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The next line that is typed; `None` at the end, or once it is not wanted any more.
fn line(called_off: &AtomicBool) -> Option<String> {
    while !is_typed() {
        if called_off.load(Ordering::Relaxed) {
            return None;
        }
    }
    // What was typed just now is for whoever reads next.
    match called_off.load(Ordering::Relaxed) {
        true => None,
        false => read(),
    }
}

fn is_typed() -> bool {
    const LOOK: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    let keyboard = terminal::keyboard();
    let mut sources = [PollFd::new(&keyboard, PollFlags::IN)];
    // What can not be looked at is told by reading it.
    !matches!(
        poll(&mut sources, Some(&LOOK)),
        Ok(0) | Err(rustix::io::Errno::INTR)
    )
}

/// A terminal gives whole lines, one at a time: this one is there, and nothing behind it.
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

pub(crate) fn agreed() -> bool {
    is_yes(line(&AtomicBool::new(false)).as_deref())
}

pub(crate) fn is_yes(answer: Option<&str>) -> bool {
    answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}
