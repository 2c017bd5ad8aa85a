//! Ends the servers when this program is killed: the program started once more as a small watcher.
//!
//! The watcher reads a pipe whose other end only this program holds. When the pipe ends, for whatever reason, so do the process
//! groups it was told of, and everything that carries the marker. A signal at the death of the parent would not do: it follows
//! the thread that started the child, and grandchildren never get it.

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
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::net::unix::pipe;
use tokio::signal::unix::{SignalKind, signal};

use super::container::Removal;
use super::processes::{Ending, Family, PATIENCE};

const MISSING: &str =
    "the guard of the MCP servers cannot be started: they may outlive this program if it is killed";

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
    /// It could not be started, and that was said.
    missing: bool,
    /// With what is known of those that may be in the middle of a download.
    groups: BTreeMap<i32, Option<Installing>>,
    /// Of those that run in a container.
    removals: BTreeMap<i32, Removal>,
}

#[derive(Debug, Clone, PartialEq)]
struct Installing {
    marker: String,
    /// It was asked to end, and must not be asked again.
    asked: bool,
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

    /// One more group, or one that is known otherwise; with its marker if it may be in the middle of a download.
    pub(super) fn add(&self, group: Pid, installing: Option<&str>) {
        let number = group.as_raw_nonzero().get();
        let installing = installing.map(|marker| Installing {
            marker: marker.to_owned(),
            asked: false,
        });
        self.0.tell(|state| {
            let line = added(number, installing.as_ref());
            state.groups.insert(number, installing);
            line
        });
    }

    /// The container of a group is removed when it ends.
    pub(super) fn remove_container(&self, group: Pid, removal: Removal) {
        let number = group.as_raw_nonzero().get();
        self.0.tell(|state| {
            let line = removed(number, &removal);
            state.removals.insert(number, removal);
            line
        });
    }

    /// A group in the middle of a download was asked to end.
    pub(super) fn asked(&self, group: Pid) {
        let number = group.as_raw_nonzero().get();
        self.0.tell(|state| match state.groups.get_mut(&number) {
            Some(Some(installing)) => {
                installing.asked = true;
                added(number, Some(installing))
            }
            _ => String::new(),
        });
    }

    pub(super) fn remove(&self, group: Pid) {
        let number = group.as_raw_nonzero().get();
        self.0.tell(|state| {
            state.groups.remove(&number);
            state.removals.remove(&number);
            format!("-{number}\n")
        });
    }
}

impl Inner {
    /// Changes the state, and tells the watcher; one that is gone is replaced and told everything.
    fn tell(&self, change: impl FnOnce(&mut State) -> String) {
        let mut state = self.state.lock();
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
        for (group, installing) in &state.groups {
            all.push_str(&added(*group, installing.as_ref()));
        }
        for (group, removal) in &state.removals {
            all.push_str(&removed(*group, removal));
        }
        match start(program, args, &all) {
            Ok(watcher) => {
                state.watcher = Some(watcher);
                state.missing = false;
            }
            Err(_) if state.missing => {}
            Err(error) => {
                state.missing = true;
                tracing::warn!(%error, "{MISSING}");
            }
        }
    }
}

/// `+GROUP`, `+GROUP MARKER` in the middle of a download, `+GROUP MARKER asked` once it was asked to end.
fn added(group: i32, installing: Option<&Installing>) -> String {
    match installing {
        Some(Installing {
            marker,
            asked: true,
        }) => format!("+{group} {marker} asked\n"),
        Some(Installing { marker, .. }) => format!("+{group} {marker}\n"),
        None => format!("+{group}\n"),
    }
}

/// `!GROUP` and how its container is removed.
fn removed(group: i32, removal: &Removal) -> String {
    // Texts in a map: nothing of it can fail, and without it there is only less to clean up.
    let removal = serde_json::to_string(removal).unwrap_or_default();
    format!("!{group} {removal}\n")
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
        let (families, removals) = listen(pipe::Receiver::from_owned_fd(pipe)?).await;
        // Before and after: an engine may wait for its container, or be about to make one.
        let remove = || join_all(removals.iter().map(Removal::run));
        if !removals.is_empty() {
            let all = families
                .iter()
                .map(|(family, _)| ended_within(family, PATIENCE));
            join_all(all).await;
            remove().await;
        }
        let ends = families.into_iter().map(|(family, how)| end(family, how));
        join_all(ends).await;
        remove().await;
        Ok(())
    })
}

/// Reads until the pipe ends: what is to be ended then, and how.
async fn listen(pipe: impl AsyncRead + Unpin) -> (Vec<(Family, Ending)>, Vec<Removal>) {
    let mut lines = BufReader::new(pipe).lines();
    let mut groups = BTreeMap::new();
    let mut removals = BTreeMap::new();
    let mut usual = Family::default();
    while let Ok(Some(line)) = lines.next_line().await {
        match line.split_at_checked(1) {
            Some(("=", token)) => usual.marker = Some(format!("{token}.")),
            Some(("+", added)) => {
                let mut words = added.split(' ');
                let group = words.next().unwrap_or_default().parse::<i32>();
                let installing = words.next().map(|marker| Installing {
                    marker: marker.to_owned(),
                    asked: words.next().is_some(),
                });
                groups.extend(group.map(|group| (group, installing)));
            }
            Some(("-", group)) => {
                if let Ok(group) = group.parse::<i32>() {
                    groups.remove(&group);
                    removals.remove(&group);
                }
            }
            Some(("!", removal)) => {
                if let Some((group, removal)) = removal.split_once(' ')
                    && let (Ok(group), Ok(removal)) =
                        (group.parse::<i32>(), serde_json::from_str(removal))
                {
                    removals.insert(group, removal);
                }
            }
            _ => {}
        }
    }
    (apart(groups, usual), removals.into_values().collect())
}

/// Those in the middle of a download each for itself, and everybody else together.
fn apart(groups: BTreeMap<i32, Option<Installing>>, mut usual: Family) -> Vec<(Family, Ending)> {
    let mut families = Vec::new();
    for (group, installing) in groups {
        let Some(group) = Pid::from_raw(group) else {
            continue;
        };
        match installing {
            Some(Installing { marker, asked }) => {
                usual.except.push(marker.clone());
                let family = Family {
                    groups: vec![group],
                    marker: Some(marker),
                    except: Vec::new(),
                };
                let how = match asked {
                    true => Ending::CLEANING_UP,
                    false => Ending::INSTALLING,
                };
                families.push((family, how));
            }
            None => usual.groups.push(group),
        }
    }
    families.push((usual, Ending::USUAL));
    families
}

/// Their input ended with the program. Waits for what comes of that, asks once, then forces.
async fn end(family: Family, how: Ending) {
    if ended_within(&family, how.closed).await {
        return;
    }
    if let Some(signal) = how.signal {
        family.signal(signal);
    }
    if !ended_within(&family, how.asked).await {
        family.signal(Signal::KILL);
    }
}

async fn ended_within(family: &Family, limit: Duration) -> bool {
    let end = tokio::time::Instant::now() + limit;
    while family.lives() {
        if tokio::time::Instant::now() >= end {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}

#[cfg(test)]
mod tests;
