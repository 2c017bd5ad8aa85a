//! `${cmd:…}`: the output of a command. It runs without a shell, so nothing in it is expanded or
//! chained by accident. For a shell, write `sh -c '…'`.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::Instant;
use toolgate_core::Redactor;
use toolgate_net::split_command;

use super::{MAX_SECRET_BYTES, parse_secret, read_bounded};

const TIMEOUT: Duration = Duration::from_secs(10);
// Poll interval for the exit status, after the output was closed.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
// Bytes of stderr that are kept, and how much of them is shown.
const MAX_STDERR_BYTES: u64 = 4096;
const MAX_SHOWN_STDERR: usize = 300;

pub(super) fn run(line: &str, folder: &Path, secrets: &[String]) -> Result<String, String> {
    run_within(line, folder, secrets, TIMEOUT)
}

fn run_within(
    line: &str,
    folder: &Path,
    secrets: &[String],
    limit: Duration,
) -> Result<String, String> {
    let words = split_command(line).ok_or("is not a command, or has an unclosed quote")?;
    let (program, arguments) = words.split_first().ok_or("is not a command")?;
    let program = match program.contains('/') {
        true => folder.join(program),
        false => program.into(),
    };
    let shown = program.display();
    let mut command = Command::new(&program);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that it can be killed with all its children.
        .process_group(0);
    let child = command
        .spawn()
        .map_err(|error| format!("{shown} cannot be started: {error}"))?;
    let mut run = CommandRun::watch(child, limit);
    let bytes = run
        .stdout()
        .map_err(|problem| format!("{shown} {problem}"))?;
    let status = run
        .wait_for_status()
        .map_err(|problem| format!("{shown} {problem}"))?;
    if status.success() {
        return parse_secret(bytes).map_err(|problem| format!("the output of {shown} {problem}"));
    }
    // What a failed command printed may be a part of the secret, so it is redacted as well.
    let printed = String::from_utf8_lossy(&bytes).into_owned();
    let printed = printed.lines().map(str::trim).map(str::to_owned);
    let redactor = Redactor::new(secrets.iter().cloned().chain(printed));
    let stderr = redactor.line(run.stderr().trim(), MAX_SHOWN_STDERR);
    let stderr = match stderr.is_empty() {
        true => String::new(),
        false => format!(": {stderr}"),
    };
    Err(format!(
        "{shown} failed ({}){stderr}",
        describe_status(status)
    ))
}

#[expect(
    clippy::disallowed_methods,
    reason = "configurations are read before anything is async, or on a thread for what blocks"
)]
fn pause() {
    std::thread::sleep(POLL_INTERVAL);
}

fn describe_status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "for an unknown reason".to_owned(),
    }
}

struct CommandRun {
    child: Child,
    stdout: Receiver<std::io::Result<Vec<u8>>>,
    stderr: Receiver<Vec<u8>>,
    limit: Duration,
    deadline: Instant,
}

impl CommandRun {
    fn watch(mut child: Child, limit: Duration) -> Self {
        let (send_stdout, stdout) = sync_channel(1);
        let (send_stderr, stderr) = sync_channel(1);
        if let Some(pipe) = child.stdout.take() {
            std::thread::spawn(move || send_stdout.send(read_bounded(pipe)));
        }
        if let Some(mut pipe) = child.stderr.take() {
            std::thread::spawn(move || {
                let mut kept = Vec::new();
                drop(pipe.by_ref().take(MAX_STDERR_BYTES).read_to_end(&mut kept));
                // Drain the rest, because a command with a full pipe would block.
                let _ended = std::io::copy(&mut pipe, &mut std::io::sink());
                send_stderr.send(kept)
            });
        }
        Self {
            child,
            stdout,
            stderr,
            limit,
            deadline: Instant::now() + limit,
        }
    }

    fn stdout(&mut self) -> Result<Vec<u8>, String> {
        let bytes = match self.stdout.recv_timeout(self.time_left()) {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return self.stop(format!("cannot be read: {error}")),
            Err(RecvTimeoutError::Disconnected) => return self.stop("cannot be read".to_owned()),
            Err(RecvTimeoutError::Timeout) => return self.time_out(),
        };
        match bytes.len() > MAX_SECRET_BYTES {
            true => self.stop(format!("prints more than {} KiB", MAX_SECRET_BYTES >> 10)),
            false => Ok(bytes),
        }
    }

    fn wait_for_status(&mut self) -> Result<ExitStatus, String> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if self.time_left().is_zero() => return self.time_out(),
                Ok(None) => pause(),
                Err(error) => return self.stop(format!("cannot be waited for: {error}")),
            }
        }
    }

    // A child may keep stderr open, so don't wait for its end.
    fn stderr(&self) -> String {
        let bytes = self
            .stderr
            .recv_timeout(self.time_left().min(POLL_INTERVAL * 20));
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn time_out<T>(&mut self) -> Result<T, String> {
        let limit = self.limit.as_secs_f64();
        self.stop(format!("took longer than {limit} s and was stopped"))
    }

    fn stop<T>(&mut self, problem: String) -> Result<T, String> {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            // It may be gone already.
            kill_process_group(group, Signal::KILL).ok();
        }
        self.child.wait().ok();
        Err(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_in_test(line: &str, limit: Duration) -> Result<String, String> {
        run_within(line, Path::new("/"), &["h1dden-t00".to_owned()], limit)
    }

    #[test]
    fn a_command_prints_a_secret_or_says_why_not() {
        for (line, expected) in [
            ("printf s3cret", Ok("s3cret")),
            ("echo 'a  b' \"c\"", Ok("a  b c")),
            ("sh -c 'echo $((1 + 1)); exit 0'", Ok("2")),
            ("bin/sh -c 'pwd'", Ok("/")),
            ("echo $HOME ; id", Ok("$HOME ; id")),
            ("true", Err("the output of true is empty")),
            ("", Err("is not a command, or has an unclosed quote")),
            ("echo 'a", Err("is not a command, or has an unclosed quote")),
            ("printf '\\377'", Err("the output of printf is not UTF-8")),
            ("sh -c 'exit 3'", Err("sh failed (exit code 3)")),
            ("sh -c 'kill -9 $$'", Err("sh failed (signal 9)")),
            (
                "sh -c 'echo s3cret-part; echo no s3cret-part, no h1dden-t00 >&2; exit 1'",
                Err("sh failed (exit code 1): no [REDACTED], no [REDACTED]"),
            ),
            (
                "head -c 65537 /dev/zero",
                Err("head prints more than 64 KiB"),
            ),
            ("cat /dev/zero", Err("cat prints more than 64 KiB")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(run_in_test(line, TIMEOUT), expected, "{line}");
        }
        let missing = run_in_test("no-such-program-here", TIMEOUT).unwrap_err();
        assert!(missing.contains("cannot be started"), "{missing}");
    }

    #[test]
    fn a_hanging_command_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        // What it has started holds its output open.
        let line = format!("sh -c 'sleep 60 & echo $! > {}; wait'", pid.display());
        let error = run_in_test(&line, Duration::from_secs(1)).unwrap_err();
        assert_eq!(error, "sh took longer than 1 s and was stopped");
        let started: i32 = std::fs::read_to_string(pid)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{started}/stat"));
        // Killed, but perhaps not reaped by its new parent yet.
        let is_gone = || state().is_ok_and(|stat| stat.contains(") Z ")) || state().is_err();
        let ended = (0..500).any(|_| {
            pause();
            is_gone()
        });
        assert!(ended, "{:?}", state());
    }
}
