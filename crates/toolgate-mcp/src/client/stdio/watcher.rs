//! Stops the servers if this program is killed, by means of a watcher process.
//!
//! The watcher reads a pipe whose other end only this program holds. When the pipe closes, it ends
//! the registered process groups and every process that has the marker in its environment. A
//! parent-death signal wouldn't do: it depends on the thread that started the child, and
//! grandchildren never receive it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};

use super::container::ContainerRemoval;
use super::processes::{END_GRACE, ProcessFamily, ShutdownPlan};

const START_FAILED: &str = "the watcher of the MCP servers can't be started: servers may outlive this program if it is killed";

/// The first argument that starts the program as the watcher; `main` must then call [`run`].
pub const SUBCOMMAND: &str = "guard-servers";

/// The watcher of all servers of a program. Cheap to clone; its process starts
/// with the first server.
#[derive(Clone)]
pub struct ServerWatcher(Arc<WatcherInner>);

struct WatcherInner {
    program: Option<(PathBuf, Vec<OsString>)>,
    token: String,
    servers: AtomicU64,
    state: Mutex<WatcherState>,
}

#[derive(Default)]
struct WatcherState {
    process: Option<Child>,
    /// It could not be started, which was logged.
    start_failed: bool,
    groups: BTreeMap<i32, WatchedGroup>,
}

/// A process group as the watcher knows it.
#[derive(Default, Serialize, Deserialize)]
struct WatchedGroup {
    installing: Option<PendingInstall>,
    removal: Option<ContainerRemoval>,
}

#[derive(Serialize, Deserialize)]
struct PendingInstall {
    marker: String,
    // It was asked to end, and must not be asked again.
    is_asked_to_end: bool,
}

impl ServerWatcher {
    /// The watcher is `program` with `args`, which must call [`run`].
    pub fn new<I: Into<OsString>>(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = I>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::with_program(Some((program.into(), args)))
    }

    /// Doesn't run a watcher: if this program is killed, servers may survive it.
    pub fn none() -> Self {
        Self::with_program(None)
    }

    fn with_program(program: Option<(PathBuf, Vec<OsString>)>) -> Self {
        Self(Arc::new(WatcherInner {
            program,
            token: format!("{:032x}", fastrand::u128(..)),
            servers: AtomicU64::new(0),
            state: Mutex::default(),
        }))
    }

    /// Creates the marker of a new server, by which the watcher finds its processes. Starts
    /// the watcher if necessary.
    pub(super) fn new_marker(&self) -> String {
        self.0.send(&mut self.0.state.lock(), "");
        let number = self.0.servers.fetch_add(1, Ordering::Relaxed);
        format!("{}.{number}.", self.0.token)
    }

    pub(super) fn add(&self, group: Pid, installing: Option<&str>) {
        self.0.update(group, |groups, number| {
            groups.entry(number).or_default().installing =
                installing.map(|marker| PendingInstall {
                    marker: marker.to_owned(),
                    is_asked_to_end: false,
                });
        });
    }

    pub(super) fn remove_container(&self, group: Pid, removal: ContainerRemoval) {
        self.0.update(group, |groups, number| {
            groups.entry(number).or_default().removal = Some(removal);
        });
    }

    pub(super) fn mark_asked_to_end(&self, group: Pid) {
        self.0.update(group, |groups, number| {
            let watched = groups.get_mut(&number);
            if let Some(installing) = watched.and_then(|watched| watched.installing.as_mut()) {
                installing.is_asked_to_end = true;
            }
        });
    }

    pub(super) fn remove(&self, group: Pid) {
        self.0.update(group, |groups, number| {
            groups.remove(&number);
        });
    }
}

impl WatcherInner {
    fn update(&self, group: Pid, change: impl FnOnce(&mut BTreeMap<i32, WatchedGroup>, i32)) {
        let number = group.as_raw_nonzero().get();
        let mut state = self.state.lock();
        change(&mut state.groups, number);
        let line = json_line(&(number, state.groups.get(&number)));
        self.send(&mut state, &line);
    }

    // Sends a change to the watcher. If it is dead, a new one is started and
    // receives the whole state.
    fn send(&self, state: &mut WatcherState, line: &str) {
        let Some((program, args)) = &self.program else {
            return;
        };
        let watcher = state.process.as_mut();
        if watcher.is_some_and(|watcher| write(watcher, line)) {
            return;
        }
        if let Some(mut dead) = state.process.take() {
            // It may still be running with its pipe full.
            let _killed = dead.kill();
            let _status = dead.wait();
        }
        let groups = state.groups.iter().map(|entry| json_line(&entry));
        let all: String = std::iter::once(json_line(&self.token))
            .chain(groups)
            .collect();
        match start_watcher(program, args, &all) {
            Ok(watcher) => {
                state.process = Some(watcher);
                state.start_failed = false;
            }
            Err(_) if state.start_failed => {}
            Err(error) => {
                state.start_failed = true;
                tracing::warn!(%error, "{START_FAILED}");
            }
        }
    }
}

// The protocol with the watcher is one JSON value per line: first the token, then each group that
// changed, with `null` for one that has ended.
fn json_line(value: &impl Serialize) -> String {
    // Fails only for a path that isn't UTF-8. Then the watcher doesn't learn of this change.
    let json = serde_json::to_string(value).unwrap_or_default();
    format!("{json}\n")
}

// False if the watcher has ended or its pipe is full.
fn write(watcher: &mut Child, text: &str) -> bool {
    let pipe = watcher.stdin.as_mut();
    pipe.is_some_and(|pipe| pipe.write_all(text.as_bytes()).is_ok())
        && !matches!(watcher.try_wait(), Ok(Some(_)))
}

// Starts the watcher in its own process group, so that Ctrl-C doesn't reach it, and without the
// marker that an outer Toolgate may have given us: the watcher must outlive both.
fn start_watcher(program: &PathBuf, args: &[OsString], state: &str) -> io::Result<Child> {
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
        // A stopped watcher must not block us, so the pipe is non-blocking.
        rustix::io::ioctl_fionbio(&*pipe, true)?;
        pipe.write_all(state.as_bytes())?;
    }
    Ok(child)
}

/// Runs as the watcher. Returns once the program that started it and all its servers have ended.
///
/// Fails if the runtime can't be created or stdin is not a pipe.
pub fn run() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        // While these handlers exist, the signals don't end the watcher.
        let _handlers = [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
            signal(SignalKind::quit())?,
        ];
        let pipe = io::stdin().as_fd().try_clone_to_owned()?;
        let (families, removals) = read_state(pipe::Receiver::from_owned_fd(pipe)?).await;
        // Containers are removed before and after: an engine may be waiting for its container, or
        // may be about to create one.
        let remove = || join_all(removals.iter().map(ContainerRemoval::run));
        if !removals.is_empty() {
            let all = families
                .iter()
                .map(|(family, _)| ended_within(family, END_GRACE));
            join_all(all).await;
            remove().await;
        }
        let ends = families.into_iter().map(|(family, plan)| end(family, plan));
        join_all(ends).await;
        remove().await;
        Ok(())
    })
}

async fn read_state(
    pipe: impl AsyncRead + Unpin,
) -> (Vec<(ProcessFamily, ShutdownPlan)>, Vec<ContainerRemoval>) {
    let mut lines = BufReader::new(pipe).lines();
    let mut groups: BTreeMap<i32, WatchedGroup> = BTreeMap::new();
    let mut others = ProcessFamily::default();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(token) = serde_json::from_str::<String>(&line) {
            others.marker = Some(format!("{token}."));
        }
        match serde_json::from_str(&line) {
            Ok((group, Some(watched))) => drop(groups.insert(group, watched)),
            Ok((group, None)) => drop(groups.remove(&group)),
            Err(_) => {}
        }
    }
    let removals = groups
        .values_mut()
        .filter_map(|watched| watched.removal.take());
    let removals = removals.collect();
    (split_families(groups, others), removals)
}

// Separates the groups that may be downloading, which are ended one by one, from all others.
fn split_families(
    groups: BTreeMap<i32, WatchedGroup>,
    mut others: ProcessFamily,
) -> Vec<(ProcessFamily, ShutdownPlan)> {
    let mut families = Vec::new();
    for (group, watched) in groups {
        let Some(group) = Pid::from_raw(group) else {
            continue;
        };
        let Some(installing) = watched.installing else {
            others.groups.push(group);
            continue;
        };
        others.except.push(installing.marker.clone());
        let family = ProcessFamily {
            groups: vec![group],
            marker: Some(installing.marker),
            except: Vec::new(),
        };
        let plan = match installing.is_asked_to_end {
            true => ShutdownPlan::CLEANING_UP,
            false => ShutdownPlan::INSTALLING,
        };
        families.push((family, plan));
    }
    families.push((others, ShutdownPlan::NORMAL));
    families
}

async fn end(family: ProcessFamily, plan: ShutdownPlan) {
    if ended_within(&family, plan.grace_after_close).await {
        return;
    }
    if let Some(signal) = plan.signal {
        family.signal(signal);
    }
    if !ended_within(&family, plan.grace_after_signal).await {
        family.signal(Signal::KILL);
    }
}

async fn ended_within(family: &ProcessFamily, limit: Duration) -> bool {
    let end = tokio::time::Instant::now() + limit;
    while family.is_alive() {
        if tokio::time::Instant::now() >= end {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}

#[cfg(test)]
mod tests;
