//! Child processes that never outlive the gateway.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use toolgate_core::text::escape;

use crate::EngineError;

// The end of stderr says why a program failed, so only that is kept.
const STDERR_TAIL_LEN: usize = 1024;
/// How long a program may take to exit after closing its output, and its stderr to arrive.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

// Relative folders in PATH are skipped: a program in the working directory must not
// be run by accident.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    find_in_path(&env::var_os("PATH")?, program)
}

fn find_in_path(path: &OsStr, program: &str) -> Option<PathBuf> {
    env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

pub(crate) fn is_installed(program: &str) -> bool {
    match program.contains('/') {
        true => is_executable(program.as_ref()),
        false => find_program(program).is_some(),
    }
}

fn is_executable(file: &Path) -> bool {
    let data = file.metadata();
    data.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// A running program in a process group of its own. Dropping it kills the whole group.
pub(crate) struct ChildProgram {
    name: String,
    child: Child,
    group: Option<Pid>,
    tail: Arc<Mutex<Vec<u8>>>,
    stderr: JoinHandle<()>,
}

impl ChildProgram {
    /// Starts a program without a shell. The first word is the program, the others are its
    /// arguments. Also returns its stdin and stdout.
    pub(crate) fn start(words: &[String]) -> Result<(Self, ChildStdin, ChildStdout), EngineError> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(EngineError::program(
                "command",
                "it is empty: name a program",
            ));
        };
        let mut child = Command::new(program)
            .args(arguments)
            // A recorder doesn't need the API keys in our environment.
            .env_clear()
            .envs(child_environment(env::vars_os()))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| EngineError::program(program, format!("can't start: {error}")))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(EngineError::program(program, "has no pipes"));
        };
        let tail = Arc::default();
        let running = Self {
            name: program.clone(),
            group: child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)),
            child,
            stderr: tokio::spawn(keep_tail(stderr, Arc::clone(&tail))),
            tail,
        };
        Ok((running, stdin, stdout))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) async fn wait_for_exit(&mut self) -> Result<(), EngineError> {
        let status = timeout(EXIT_TIMEOUT, self.child.wait()).await;
        // Its own children may still hold stderr open, and reading it would never end.
        self.kill();
        timeout(EXIT_TIMEOUT, &mut self.stderr).await.ok();
        match status {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(self.error_with_stderr(&format!("ended ({status})"))),
            Ok(Err(error)) => Err(self.error_with_stderr(&error.to_string())),
            Err(_) => Err(self.error_with_stderr("closed its output but did not exit")),
        }
    }

    pub(crate) fn error_with_stderr(&self, why: &str) -> EngineError {
        let tail = self.tail.lock();
        let words = String::from_utf8_lossy(&tail);
        let mut lines: Vec<&str> = words.lines().map(str::trim).collect();
        // The ALSA library logs each failed step. The program itself then says in one
        // line what went wrong.
        if lines.iter().any(|line| is_plain(line)) {
            lines.retain(|line| is_plain(line));
        }
        match escape(lines.join("; ").trim_matches([';', ' '])) {
            said if said.is_empty() => EngineError::program(&self.name, why),
            said => EngineError::program(&self.name, format!("{why}: {said}")),
        }
    }

    /// Kills the whole process group.
    pub(crate) fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            // The group may be gone already.
            let _gone = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for ChildProgram {
    fn drop(&mut self) {
        self.kill();
        self.stderr.abort();
    }
}

// The variables that a program inherits: those that sound needs, but none of our API keys.
const PASSED_VARIABLES: &str = "\
DBUS_SESSION_BUS_ADDRESS DISPLAY HOME LANG LOGNAME PATH SHELL TERM TMPDIR TZ USER \
WAYLAND_DISPLAY";

const PASSED_PREFIXES: &str = "ALSA_ ESPEAK_ JACK_ LC_ PIPEWIRE_ PULSE_ XDG_";

fn child_environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    ours.into_iter()
        .filter(|(name, _)| name.to_str().is_some_and(is_passed))
}

fn is_passed(name: &str) -> bool {
    let mut prefixes = PASSED_PREFIXES.split(' ');
    PASSED_VARIABLES.split(' ').any(|known| known == name)
        || prefixes.any(|prefix| name.starts_with(prefix))
}

// ALSA's lines only say where in the library something failed.
fn is_plain(line: &str) -> bool {
    !line.is_empty() && !line.contains("ALSA lib ")
}

// Reads everything, so that the program never blocks on a full pipe.
async fn keep_tail(mut stderr: ChildStderr, tail: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; STDERR_TAIL_LEN];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let mut tail = tail.lock();
        tail.extend_from_slice(&buffer[..read]);
        let surplus = tail.len().saturating_sub(STDERR_TAIL_LEN);
        tail.drain(..surplus);
    }
}

pub(crate) async fn read_up_to(from: impl AsyncRead + Unpin, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // An error just ends the output: what was read before it still counts.
    from.take(limit).read_to_end(&mut bytes).await.ok();
    bytes
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    fn lives(pid: i32) -> bool {
        // A zombie has been killed. Reaping it is not our concern.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    #[test]
    fn executables_are_found_in_absolute_path_folders() {
        let home = tempfile::tempdir().unwrap();
        for (name, mode) in [("plain", 0o644), ("tool", 0o755)] {
            let file = home.path().join(name);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = env::join_paths(["relative".as_ref(), home.path()]).unwrap();
        assert_eq!(find_in_path(&path, "tool"), Some(home.path().join("tool")));
        assert_eq!(find_in_path(&path, "plain"), None);
        assert_eq!(find_in_path(&path, "absent"), None);
        assert_eq!(find_in_path(OsStr::new(""), "tool"), None);
    }

    #[tokio::test]
    async fn error_contains_the_last_stderr_lines() {
        for (script, expected) in [
            ("exit 0", None),
            ("echo warning >&2", None),
            (
                "echo no such device >&2; exit 3",
                Some("sh: ended (exit status: 3): no such device"),
            ),
            (
                "echo one >&2; echo ' two ' >&2; echo >&2; exit 1",
                Some("sh: ended (exit status: 1): one; two"),
            ),
            (
                "echo 'ALSA lib conf.c:5180:(x) no card' >&2; echo 'main:831: audio open error' >&2; exit 1",
                Some("sh: ended (exit status: 1): main:831: audio open error"),
            ),
            (
                "echo 'ALSA lib conf.c:5180:(x) no card' >&2; exit 1",
                Some("sh: ended (exit status: 1): ALSA lib conf.c:5180:(x) no card"),
            ),
            ("exit 3", Some("sh: ended (exit status: 3)")),
            ("kill -9 $$", Some("sh: ended (signal: 9 (SIGKILL))")),
            (
                "printf '\\033[2Jx' >&2; exit 1",
                Some("sh: ended (exit status: 1): \\u{1b}[2Jx"),
            ),
        ] {
            let (mut running, _stdin, stdout) = ChildProgram::start(&shell(script)).unwrap();
            read_up_to(stdout, 10).await;
            let end = running
                .wait_for_exit()
                .await
                .map_err(|error| error.to_string());
            assert_eq!(end.err().as_deref(), expected, "{script}");
        }
    }

    #[tokio::test]
    async fn child_program_does_not_inherit_our_variables() {
        let ours = "CARGO_MANIFEST_DIR";
        assert!(
            env::var_os(ours).is_some(),
            "whoever runs the tests sets it"
        );
        let (_running, _stdin, stdout) = ChildProgram::start(&["env".to_owned()]).unwrap();
        let variables = String::from_utf8(read_up_to(stdout, 64 << 10).await).unwrap();
        let has = |name: &str| variables.lines().any(|line| line.starts_with(name));
        assert!(has("PATH=") && !has(ours), "{variables}");
    }

    #[tokio::test]
    async fn stderr_is_drained_and_only_its_tail_kept() {
        let script = "yes no | head -c 5000000 >&2; echo the end >&2; exit 1";
        let (mut running, _stdin, stdout) = ChildProgram::start(&shell(script)).unwrap();
        read_up_to(stdout, 10).await;
        let text = running.wait_for_exit().await.unwrap_err().to_string();
        assert!(
            text.ends_with("the end") && text.len() < 3 * STDERR_TAIL_LEN,
            "{text}"
        );
    }

    #[tokio::test]
    async fn program_that_cannot_start_is_named() {
        for (words, expected) in [
            (vec![], "command: it is empty: name a program"),
            (
                vec!["/no/such/program".to_owned()],
                "/no/such/program: can't start: No such file",
            ),
        ] {
            let error = ChildProgram::start(&words).err().unwrap().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn dropping_a_program_kills_its_children() {
        let (running, _stdin, mut stdout) =
            ChildProgram::start(&shell("sleep 600 & echo $! $$; wait")).unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"\n") {
            stdout.read_buf(&mut said).await.unwrap();
        }
        let said = String::from_utf8(said).unwrap();
        let pids: Vec<i32> = said
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect();
        assert!(pids.len() == 2 && pids.iter().all(|pid| lives(*pid)));
        drop(running);
        let gone = async {
            while pids.iter().any(|pid| lives(*pid)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(10), gone)
            .await
            .expect("all of them end");
    }

    #[test]
    fn child_environment_has_sound_variables_but_no_keys() {
        for (name, passes) in [
            ("PATH", true),
            ("HOME", true),
            ("LANG", true),
            ("LC_ALL", true),
            ("XDG_RUNTIME_DIR", true),
            ("PULSE_SERVER", true),
            ("PIPEWIRE_REMOTE", true),
            ("ALSA_CARD", true),
            ("ESPEAK_DATA_PATH", true),
            ("DBUS_SESSION_BUS_ADDRESS", true),
            ("OPENAI_API_KEY", false),
            ("TOOLGATE_TOKEN", false),
            ("MQTT_PASSWORD", false),
            ("HOMEASSISTANT_TOKEN", false),
            ("LD_PRELOAD", false),
        ] {
            let ours = [(OsString::from(name), OsString::from("x"))];
            assert_eq!(child_environment(ours).count() == 1, passes, "{name}");
        }
    }
}
