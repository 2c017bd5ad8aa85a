//! Third-party programs for tests: where `./test.sh` installs them, and what a
//! test does without them.
//!
//! A test asks for what it needs and returns if that is missing:
//!
//! ```no_run
//! let Some(clients) = thirdparty::MCP_CLIENTS.folder() else { return };
//! if !thirdparty::has_programs(&["tmux"]) { return }
//! ```
//!
//! Rust's test harness counts such a test as passed: a running test can't tell it otherwise. So
//! each skipped test is a line on stderr, which the harness doesn't capture, and in the file that
//! `TOOLGATE_TEST_SKIPPED` names, which `./test.sh` counts. With `CI=true` the test fails instead.

use std::backtrace::Backtrace;
use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Packages of npm and PyPI that `./test.sh` installs together, in a folder of the test cache.
#[derive(Clone, Copy)]
pub struct Packages {
    folder: &'static str,
    contents: &'static str,
    /// Present only once everything is installed. The Pythons are links that a
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

/// Both generations of the TypeScript SDK, the inspector, and the Python SDK.
pub const MCP_CLIENTS: Packages = Packages {
    folder: "mcp-clients",
    contents: "the MCP SDKs and the inspector",
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
    /// Their folder. If they or a program that runs them are missing, the test is [skipped](skip).
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

/// Whether programs are on the `PATH`. If one is not, the test is [skipped](skip).
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

/// Whether a program is on the `PATH`, for tests that have something to do without it too.
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

/// Like [`skip`], but never a failure: for what `./test.sh` can't install, such as IPv6, or what
/// nobody has to have.
///
/// # Panics
/// If the file that `TOOLGATE_TEST_SKIPPED` names can't be written.
pub fn skip_optional(needed: &str) {
    let line = skipped(needed);
    // Not `eprint!`: the harness captures that and drops it when the test passes.
    drop(io::stderr().write_all(line.as_bytes()));
    if let Some(file) = env::var_os("TOOLGATE_TEST_SKIPPED").filter(|file| !file.is_empty())
        && let Err(error) = add_line(Path::new(&file), &line)
    {
        panic!("{} can't be written: {error}", Path::new(&file).display());
    }
}

/// `./test.sh` reads the lines of this form.
fn skipped(needed: &str) -> String {
    format!("skipped: {} needs {needed}\n", test_name())
}

/// The name of the running test.
fn test_name() -> String {
    // The harness names the thread of a test after it. With `--test-threads=1` tests run on the
    // main thread.
    let thread = std::thread::current();
    let is_its_own = |name: &&str| *name != "main" && !name.starts_with("tokio-");
    let of_thread = thread.name().filter(is_its_own).map(str::to_owned);
    let of_stack = || test_in(&Backtrace::force_capture().to_string());
    let of_program = || {
        let program = env::args_os().next().map(PathBuf::from);
        let name = program.as_deref().and_then(Path::file_name);
        let name = name.unwrap_or_default().to_string_lossy();
        format!("a test of {name}")
    };
    of_thread.or_else(of_stack).unwrap_or_else(of_program)
}

/// The function that the harness called, by the names of a
/// backtrace, innermost first: `crate::module::name::{{closure}}`.
fn test_in(backtrace: &str) -> Option<String> {
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

/// Tests of several programs write at the same time: one write, at the end of the file.
fn add_line(file: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(line.as_bytes())
}

/// The cache, as `./test.sh` finds it.
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
        let line = skipped("mosquitto");
        let expected = "skipped: tests::a_skipped_test_is_named_with_the_reason needs mosquitto\n";
        assert_eq!(line, expected);
    }

    #[test]
    fn a_skipped_test_is_named_on_the_main_thread_too() -> io::Result<()> {
        let test = "tests::a_skipped_test_is_named_with_the_reason";
        let done = std::process::Command::new(env::current_exe()?)
            .args(["--test-threads=1", "--exact", test])
            .output()?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{said}");
        assert!(said.contains("1 passed"), "{said}");
        Ok(())
    }

    #[test]
    fn every_skipped_test_has_a_line_of_its_own() -> io::Result<()> {
        let name = format!("toolgate-skipped-{}", std::process::id());
        let file = env::temp_dir().join(name);
        for line in ["one\n", "two\n"] {
            add_line(&file, line)?;
        }
        let kept = std::fs::read_to_string(&file)?;
        std::fs::remove_file(&file)?;
        assert_eq!(kept, "one\ntwo\n");
        Ok(())
    }
}
