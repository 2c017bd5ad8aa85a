//! Ends the servers when this program is killed: the program started once more as a small watcher.
//!
//! The watcher reads a pipe whose other end only this program holds. When the pipe ends, for whatever reason, so do the process
//! groups it was told of, and everything that carries the marker. A signal at the death of the parent would not do: it follows
//! the thread that started the child, and grandchildren never get it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};

use super::processes::Family;

/// How long servers may take to end by themselves.
const GRACE: Duration = Duration::from_millis(500);

/// The word that a program should know as "be the watcher", and call [`run`] for.
pub const WORD: &str = "guard-of-mcp-servers";

/// The watcher over all servers of a program. Cheap to clone; starts with the first server.
#[derive(Clone)]
pub struct Guard(Arc<Inner>);

struct Inner {
    /// How to start this program as a watcher.
    program: Option<(PathBuf, Vec<OsString>)>,
    /// What the markers of all servers of this program begin with.
    token: String,
    servers: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    watcher: Option<Child>,
    groups: BTreeSet<i32>,
}

impl Guard {
    /// `program` is started with `args` and must then call [`run`].
    pub fn new<I: Into<OsString>>(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = I>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::with(Some((program.into(), args)))
    }

    /// No watcher: servers are only ended by a program that ends in an orderly way.
    pub fn none() -> Self {
        Self::with(None)
    }

    fn with(program: Option<(PathBuf, Vec<OsString>)>) -> Self {
        Self(Arc::new(Inner {
            program,
            token: format!("{:032x}", fastrand::u128(..)),
            servers: AtomicU64::new(0),
            state: Mutex::default(),
        }))
    }

    /// The marker for one more server. From here on the watcher finds whoever carries it.
    pub(super) fn marker(&self) -> String {
        self.0.tell(|_| String::new());
        let number = self.0.servers.fetch_add(1, Ordering::Relaxed);
        format!("{}.{number}.", self.0.token)
    }

    pub(super) fn add(&self, group: Pid) {
        let number = group.as_raw_nonzero().get();
        self.0.tell(|state| {
            state.groups.insert(number);
            format!("+{number}\n")
        });
    }

    pub(super) fn remove(&self, group: Pid) {
        let number = group.as_raw_nonzero().get();
        self.0.tell(|state| {
            state.groups.remove(&number);
            format!("-{number}\n")
        });
    }
}

impl Inner {
    /// Changes the state, and tells the watcher; one that is gone is replaced and told everything.
    fn tell(&self, change: impl FnOnce(&mut State) -> String) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let line = change(&mut state);
        let Some((program, args)) = &self.program else {
            return;
        };
        if state
            .watcher
            .as_mut()
            .is_some_and(|watcher| write(watcher, &line))
        {
            return;
        }
        if let Some(mut dead) = state.watcher.take() {
            // It cannot be reached, so it must not linger.
            let _gone = dead.kill();
            let _status = dead.wait();
        }
        let mut all = format!("={}\n", self.token);
        for group in &state.groups {
            all.push_str(&format!("+{group}\n"));
        }
        match start(program, args, &all) {
            Ok(watcher) => state.watcher = Some(watcher),
            Err(error) => tracing::warn!(
                %error,
                "the guard of the MCP servers cannot be started: they may outlive this program if it is killed"
            ),
        }
    }
}

/// False if the watcher is gone, or has not read for very long.
fn write(watcher: &mut Child, text: &str) -> bool {
    let pipe = watcher.stdin.as_mut();
    pipe.is_some_and(|pipe| pipe.write_all(text.as_bytes()).is_ok())
        && !matches!(watcher.try_wait(), Ok(Some(_)))
}

/// In a process group of its own, so that Ctrl-C does not reach it, and without the marker that a program around this one may
/// have given us: the watcher must outlive both.
fn start(program: &PathBuf, args: &[OsString], told: &str) -> io::Result<Child> {
    let mut child = Command::new(program)
        .args(args)
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(pipe) = &mut child.stdin {
        // A watcher that was stopped must not stop us.
        rustix::io::ioctl_fionbio(&*pipe, true)?;
        pipe.write_all(told.as_bytes())?;
    }
    Ok(child)
}

/// The watcher itself: returns when the program that started it is gone, and its servers with it.
///
/// # Errors
///
/// If there is no runtime to be had, or stdin is no pipe.
pub fn run() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        // Whoever is asked to listen to these does not die of them.
        let _ignored = [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
            signal(SignalKind::quit())?,
        ];
        let pipe = io::stdin().as_fd().try_clone_to_owned()?;
        let family = listen(pipe::Receiver::from_owned_fd(pipe)?).await;
        end(family).await;
        Ok(())
    })
}

/// Reads until the pipe ends: what is to be ended then.
async fn listen(pipe: impl AsyncRead + Unpin) -> Family {
    let mut lines = BufReader::new(pipe).lines();
    let mut groups = BTreeSet::new();
    let mut marker = None;
    while let Ok(Some(line)) = lines.next_line().await {
        match line.split_at_checked(1) {
            Some(("=", token)) => marker = Some(format!("{token}.")),
            Some(("+", group)) => groups.extend(group.parse::<i32>()),
            Some(("-", group)) => {
                group.parse::<i32>().map(|group| groups.remove(&group)).ok();
            }
            _ => {}
        }
    }
    Family {
        groups: groups.into_iter().filter_map(Pid::from_raw).collect(),
        marker,
    }
}

/// Asks once, then forces.
async fn end(family: Family) {
    if !family.lives() {
        return;
    }
    family.signal(Signal::TERM);
    let end = tokio::time::Instant::now() + GRACE;
    while family.lives() {
        if tokio::time::Instant::now() >= end {
            family.signal(Signal::KILL);
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::super::processes::MARKER;
    use super::*;

    /// A hang, not a slow machine.
    const HANG: Duration = Duration::from_secs(20);

    /// This test binary, to run one test of this file and nothing else.
    fn this(test: &str) -> (PathBuf, [String; 4]) {
        let path = module_path!().split_once("::").unwrap().1;
        let words = [
            &format!("{path}::{test}"),
            "--exact",
            "--ignored",
            "--nocapture",
        ];
        (std::env::current_exe().unwrap(), words.map(str::to_owned))
    }

    #[test]
    #[ignore = "the watcher of the tests below: started by them, in a process of its own"]
    fn as_guard() {
        // Run by hand there is no pipe, and nothing to do.
        run().ok();
    }

    /// Starts servers, one in its group and one that left it, says so, and waits to be killed.
    #[test]
    #[ignore = "the program of the tests below: started by them, in a process of its own"]
    fn as_program() {
        let (program, args) = this("as_guard");
        let guard = Guard::new(program, args);
        for script in ["trap '' TERM; sleep 1000", "setsid sleep 1000; true"] {
            let child = Command::new("sh")
                .args(["-c", script])
                .env(MARKER, guard.marker())
                .process_group(0)
                .spawn()
                .unwrap();
            guard.add(Pid::from_child(&child));
        }
        let watcher = guard.0.state.lock().unwrap().watcher.as_ref().unwrap().id();
        println!("ready {watcher} {}.", guard.0.token);
        io::stdin().read_to_end(&mut Vec::new()).unwrap();
    }

    async fn until(what: &str, mut is: impl FnMut() -> bool) {
        let wait = async {
            while !is() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(HANG, wait).await.is_ok(), "{what}");
    }

    #[tokio::test]
    async fn servers_end_with_a_program_that_is_killed() {
        let (program, args) = this("as_program");
        let mut program = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = io::BufReader::new(program.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("ready") {
            line.clear();
            assert_ne!(io::BufRead::read_line(&mut said, &mut line).unwrap(), 0);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let watcher = Pid::from_raw(words[1].parse().unwrap()).unwrap();
        let family = Family {
            groups: Vec::new(),
            marker: Some(words[2].to_owned()),
        };
        until("no server has left its group", || {
            family.marked().len() >= 3
        })
        .await;
        // What a terminal or a service manager sends to everybody does not end the watcher.
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            rustix::process::kill_process(watcher, signal).unwrap();
        }
        program.kill().unwrap();
        program.wait().unwrap();
        until("servers are left", || !family.lives()).await;
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{watcher}/stat"));
            stat.map_or(true, |stat| stat.contains(") Z "))
        };
        until("the watcher is left", gone).await;
    }

    #[tokio::test]
    async fn a_watcher_that_died_is_replaced_and_told_everything() {
        let guard = Guard::new("sh", ["-c", "cat >/dev/null"]);
        let watcher = |guard: &Guard| {
            let mut state = guard.0.state.lock().unwrap();
            let watcher = state.watcher.as_mut().unwrap();
            (watcher.id(), watcher.try_wait().unwrap().is_some())
        };
        guard.add(Pid::INIT);
        let (first, _) = watcher(&guard);
        rustix::process::kill_process(
            Pid::from_raw(first.try_into().unwrap()).unwrap(),
            Signal::KILL,
        )
        .unwrap();
        until("the watcher does not die", || watcher(&guard).1).await;
        guard.marker();
        assert_ne!(watcher(&guard), (first, true));
        assert_eq!(guard.0.state.lock().unwrap().groups.len(), 1);
        guard.remove(Pid::INIT);
        assert!(guard.0.state.lock().unwrap().groups.is_empty());
        let mut state = guard.0.state.lock().unwrap();
        let mut last = state.watcher.take().unwrap();
        last.kill().unwrap();
        last.wait().unwrap();
    }

    #[tokio::test]
    async fn the_watcher_knows_what_it_was_told() {
        let told: &[u8] = b"=token\n+5\n+6\nnonsense\n+x\n\n-5\n+7\n-9";
        assert_eq!(
            listen(told).await,
            Family {
                groups: vec![Pid::from_raw(6).unwrap(), Pid::from_raw(7).unwrap()],
                marker: Some("token.".to_owned()),
            }
        );
        // A pipe that ends before the token came leaves nobody to be looked for.
        assert_eq!(listen(&b""[..]).await.marker, None);
    }

    #[test]
    fn a_watcher_that_cannot_be_started_is_no_reason_to_fail() {
        let guard = Guard::new("/no/such/program", [""; 0]);
        assert_ne!(guard.marker(), guard.marker());
        assert!(Guard::none().marker().ends_with(".0."));
    }
}
