//! Faults of the process itself, such as signals and floods, without unsafe code.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process, setsid};

use crate::modes::{ChildMode, ExitAction, FaultModes};

/// Set in a process that `fakemcp` started itself: one that ignores signals, or the child.
const STAGE: &str = "FAKEMCP_STAGE";

/// Applies the modes that act before the first message.
pub(crate) fn prepare(modes: &FaultModes, arguments: &[String]) {
    match std::env::var(STAGE).as_deref() {
        Ok("child") => {
            if modes.child == Some(ChildMode::Session) {
                setsid().ok();
            }
            block_forever();
        }
        Ok(_) => {}
        Err(_) if modes.deaf => ignore_signals(arguments),
        Err(_) => {}
    }
    if modes.child.is_some() {
        start_child(arguments);
    }
    write_to_stderr(&modes.stderr);
    if let Some((total, text)) = &modes.flood_stderr {
        flood_stderr(*total, text);
    }
    if let Some((times, file)) = &modes.failing
        && count_run(file) <= *times
    {
        std::process::exit(1);
    }
    pause(modes.wait);
}

/// Ignored signals stay ignored across exec, and a shell can ignore them without unsafe code.
fn ignore_signals(arguments: &[String]) {
    let Ok(own) = std::env::current_exe() else {
        return;
    };
    let error = Command::new("sh")
        .args(["-c", "trap '' TERM INT HUP; exec \"$0\" \"$@\""])
        .arg(own)
        .args(arguments)
        .env(STAGE, "deaf")
        .exec();
    write_to_stderr(error.to_string().as_bytes());
}

fn start_child(arguments: &[String]) {
    let Ok(own) = std::env::current_exe() else {
        return;
    };
    let child = Command::new(own)
        .args(arguments)
        .env(STAGE, "child")
        .stdin(Stdio::null())
        .spawn();
    if let Err(error) = child {
        write_to_stderr(error.to_string().as_bytes());
    }
}

fn flood_stderr(total: u64, text: &[u8]) {
    let times = usize::try_from(total).unwrap_or(usize::MAX) / text.len().max(1);
    let block = text.repeat((1 << 16) / text.len().max(1) + 1);
    let mut left = times * text.len();
    while left > 0 {
        let now = left.min(block.len());
        write_to_stderr(&block[..now]);
        left -= now;
    }
}

/// Appends a byte to a file and returns its length.
pub(crate) fn count_run(file: &std::path::Path) -> u64 {
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(file) {
        drop(file.write_all(b"x"));
    }
    std::fs::metadata(file).map_or(0, |file| file.len())
}

pub(crate) fn run_action(action: ExitAction) {
    match action {
        ExitAction::Exit(status) => std::process::exit(status),
        ExitAction::Signal(number) => signal(number),
        ExitAction::CloseStdout => replace_with_null(rustix::stdio::dup2_stdout),
        ExitAction::CloseStdin => replace_with_null(rustix::stdio::dup2_stdin),
        ExitAction::StopReading => block_forever(),
    }
}

/// Sends a signal to ourselves until it works: the first SIGSEGV is taken by Rust's own handler.
pub(crate) fn signal(number: i32) {
    while let Some(signal) = Signal::from_named_raw(number) {
        kill_process(getpid(), signal).ok();
        pause(10);
    }
}

/// Replaces a pipe with /dev/null, which closes our end of it.
fn replace_with_null<F>(replace: F)
where
    F: Fn(std::fs::File) -> rustix::io::Result<()>,
{
    if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        replace(null).ok();
    }
}

pub(crate) fn write_to_stderr(bytes: &[u8]) {
    drop(std::io::stderr().write_all(bytes));
}

#[expect(clippy::disallowed_methods, reason = "nothing here is async")]
pub(crate) fn pause(milliseconds: u64) {
    if milliseconds > 0 {
        std::thread::sleep(Duration::from_millis(milliseconds));
    }
}

pub(crate) fn block_forever() -> ! {
    loop {
        pause(60_000);
    }
}
