//! Third-party programs that tests use: where `./test.sh` installs them, and how a test that needs
//! a missing one skips itself.
//!
//! A test names what it needs and returns if that is missing:
//!
//! ```no_run
//! let Some(clients) = thirdparty::MCP_CLIENTS.folder() else { return };
//! if !thirdparty::has_programs(&["tmux"]) { return }
//! ```
//!
//! Rust's test harness counts such a test as passed, because a running test can't mark itself
//! as skipped. So each skipped test writes a line to stderr, past the harness's capture, and to
//! the file that `TOOLGATE_TEST_SKIPPED` names, whose lines `./test.sh` counts. With `CI=true`
//! the test fails instead.

mod inspector;

use std::backtrace::Backtrace;
use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use inspector::Inspector;

/// Packages of npm and PyPI that `./test.sh` installs together, in a folder of the test cache.
#[derive(Clone, Copy)]
pub struct Packages {
    folder: &'static str,
    contents: &'static str,
    /// Present only once everything is installed. `python` is a link that a
    /// system upgrade can break.
    files: &'static [&'static str],
    programs: &'static [&'static str],
}

/// Tools that check the gateway over HTTP.
pub const HTTP: Packages = Packages {
    folder: "http",
    contents: "Playwright and Schemathesis",
    files: &["npm.txt", "pypi.txt", "python/bin/python"],
    programs: &["node"],
};

/// The expression parser that `toolgate-math` is compared with.
pub const MATHJS: Packages = Packages {
    folder: "npm",
    contents: "mathjs",
    files: &["node_modules/mathjs/package.json"],
    programs: &["node"],
};

/// Both generations of the TypeScript SDK, the inspector, the Python SDK and FastMCP, with what the
/// newer ones need for tasks.
pub const MCP_CLIENTS: Packages = Packages {
    folder: "mcp-clients",
    contents: "the MCP SDKs, FastMCP and the inspector",
    files: &["npm.txt", "pypi.txt", "python/bin/python"],
    programs: &["node"],
};

/// MCP servers, the conformance suite, and the Node they run on.
pub const MCP_SERVERS: Packages = Packages {
    folder: "mcp",
    contents: "real MCP servers",
    files: &["npm.txt", "pypi.txt", "python/bin/python"],
    programs: &["git"],
};

/// Scripted and real model servers, and LangChain.
pub const MODELS: Packages = Packages {
    folder: "models",
    contents: "LangChain, aimock and a small model",
    files: &["npm.txt", "pypi.txt", "model.txt", "python/bin/python"],
    programs: &["node"],
};

/// Whisper and a wake word detector.
pub const SPEECH: Packages = Packages {
    folder: "voice",
    contents: "Whisper and openWakeWord",
    files: &["pypi.txt", "model", "asr/bin/python", "wake/bin/python"],
    programs: &["espeak-ng"],
};

impl Packages {
    /// Returns their folder. If they, or a program that runs them, are missing,
    /// the test is [skipped](skip).
    ///
    /// # Panics
    /// With `CI=true`, if something is missing.
    pub fn folder(self) -> Option<PathBuf> {
        let folder = cache().join(self.folder);
        if self.files.iter().any(|file| !folder.join(file).exists()) {
            skip(self.contents);
            return None;
        }
        has_programs(self.programs).then_some(folder)
    }
}

/// The Node that is installed beside the servers of [`MCP_SERVERS`], in their folder.
pub fn node(servers: &Path) -> PathBuf {
    let machine = match env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "x64",
    };
    servers.join(format!("node_modules/node-linux-{machine}/bin/node"))
}

/// Returns whether all programs are on the `PATH`. If one isn't, the test is [skipped](skip).
///
/// # Panics
/// With `CI=true`, if one is missing.
pub fn has_programs(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !is_on_path(program));
    if let Some(missing) = missing {
        skip(missing);
    }
    missing.is_none()
}

/// Returns whether a program is on the `PATH`, for tests that can do part of their work without it.
pub fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Reports that the calling test needs something that `./test.sh` installs. The test then returns.
///
/// # Panics
/// With `CI=true`: everything has to be installed there.
pub fn skip(needed: &str) {
    let needed = format!("{needed} (./test.sh installs it)");
    assert!(env::var("CI").as_deref() != Ok("true"), "needs {needed}");
    skip_optional(&needed);
}

/// Like [`skip`], but never fails: for what `./test.sh` can't install, such as IPv6, and for what
/// is optional even there.
///
/// # Panics
/// If the file that `TOOLGATE_TEST_SKIPPED` names can't be written.
pub fn skip_optional(needed: &str) {
    let line = skipped_line(needed);
    // Not `eprint!`: the harness captures that and drops it when the test passes.
    drop(io::stderr().write_all(line.as_bytes()));
    if let Some(file) = env::var_os("TOOLGATE_TEST_SKIPPED").filter(|file| !file.is_empty())
        && let Err(error) = append_line(Path::new(&file), &line)
    {
        panic!("{} can't be written: {error}", Path::new(&file).display());
    }
}

// `./test.sh` parses this line.
fn skipped_line(needed: &str) -> String {
    format!("skipped: {} needs {needed}\n", test_name())
}

fn test_name() -> String {
    // The harness names the thread of a test after it. With `--test-threads=1` tests run on the
    // main thread.
    let thread = std::thread::current();
    let is_test_name = |name: &&str| *name != "main" && !name.starts_with("tokio-");
    let from_thread = thread.name().filter(is_test_name).map(str::to_owned);
    let from_stack = || test_in_backtrace(&Backtrace::force_capture().to_string());
    let from_program = || {
        let program = env::args_os().next().map(PathBuf::from);
        let name = program.as_deref().and_then(Path::file_name);
        let name = name.unwrap_or_default().to_string_lossy();
        format!("a test of {name}")
    };
    from_thread.or_else(from_stack).unwrap_or_else(from_program)
}

/// The test function that the harness called. A backtrace lists names innermost
/// first, such as `crate::module::name::{{closure}}`.
fn test_in_backtrace(backtrace: &str) -> Option<String> {
    let frames = backtrace.lines().filter_map(|line| line.split_once(": "));
    let frames = frames.filter(|(number, _)| number.trim().parse::<usize>().is_ok());
    let names = frames.map(|(_, name)| name.trim());
    let inner: Vec<&str> = names
        .take_while(|name| !name.starts_with("test::"))
        .collect();
    let test = inner.iter().rev().find_map(|name| {
        let name = name.strip_suffix("::{{closure}}")?;
        let (program, test) = name.split_once("::")?;
        let is_ours = !["core", "std", "alloc", "tokio"].contains(&program);
        (is_ours && !program.starts_with('<')).then_some(test)
    });
    test.map(str::to_owned)
}

// Appends with a single write, because several test programs use the file at the same time.
fn append_line(file: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(line.as_bytes())
}

// The same lookup as in `./test.sh`.
fn cache() -> PathBuf {
    let folder = |name| {
        let value = env::var_os(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value))
    };
    let usual = || {
        let caches = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        caches.unwrap_or_default().join("toolgate-tests")
    };
    folder("TOOLGATE_TEST_CACHE").unwrap_or_else(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_test_is_named_with_the_reason() {
        let line = skipped_line("mosquitto");
        let expected = "skipped: tests::a_skipped_test_is_named_with_the_reason needs mosquitto\n";
        assert_eq!(line, expected);
    }

    #[test]
    fn a_skipped_test_is_named_on_the_main_thread_too() -> io::Result<()> {
        let test = "tests::a_skipped_test_is_named_with_the_reason";
        let output = std::process::Command::new(env::current_exe()?)
            .args(["--test-threads=1", "--exact", test])
            .output()?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{stdout}");
        assert!(stdout.contains("1 passed"), "{stdout}");
        Ok(())
    }

    #[test]
    fn each_skipped_test_is_on_its_own_line() -> io::Result<()> {
        let name = format!("toolgate-skipped-{}", std::process::id());
        let file = env::temp_dir().join(name);
        for line in ["one\n", "two\n"] {
            append_line(&file, line)?;
        }
        let kept = std::fs::read_to_string(&file)?;
        std::fs::remove_file(&file)?;
        assert_eq!(kept, "one\ntwo\n");
        Ok(())
    }
}
