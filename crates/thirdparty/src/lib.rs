//! Where `./test.sh` puts programs that others wrote, for tests against them.
//!
//! A test asks for what it needs and leaves if that is not there:
//!
//! ```no_run
//! let Some(clients) = thirdparty::installed("mcp-clients", &["npm.txt", "pypi.txt"]) else { return };
//! ```
//!
//! Rust's test harness counts such a test as passed: it can't be told while it runs that a test is to be ignored. So each says that
//! it was skipped, on stderr and in the file that `TOOLGATE_TEST_SKIPPED` names, and `./test.sh` lists them at its end. With
//! `CI=true` it fails instead.

use std::backtrace::Backtrace;
use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A folder of the cache in which all these files are. If one is missing, the test is [skipped](skip).
///
/// # Panics
/// With `CI=true`, if something is missing.
pub fn installed(folder: &str, files: &[&str]) -> Option<PathBuf> {
    let folder = cache().join(folder);
    let mut files = files.iter().map(|file| folder.join(file));
    match files.find(|file| !file.exists()) {
        Some(missing) => {
            skip(&missing_text(&missing.display().to_string()));
            None
        }
        None => Some(folder),
    }
}

/// Whether programs are on the `PATH`. If one is not, the test is [skipped](skip).
///
/// # Panics
/// With `CI=true`, if one is missing.
pub fn has_programs(programs: &[&str]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| env::split_paths(&path).any(|it| it.join(name).is_file());
    match programs.iter().find(|name| !is_there(name)) {
        Some(missing) => {
            skip(&missing_text(missing));
            false
        }
        None => true,
    }
}

/// The test that calls this can't run, and returns: says so where people look, and where `./test.sh` counts.
///
/// # Panics
/// With `CI=true`: there, everything has to be installed.
pub fn skip(why: &str) {
    assert!(env::var("CI").as_deref() != Ok("true"), "{why}");
    skip_optional(why);
}

/// Like [`skip`], but never a failure: for what nobody has to have, such as a suite that isn't released or IPv6.
///
/// # Panics
/// If it can't be written down.
pub fn skip_optional(why: &str) {
    let line = skipped(why);
    // Past the test harness, which hides what passing tests print.
    drop(io::stderr().write_all(line.as_bytes()));
    if let Some(file) = env::var_os("TOOLGATE_TEST_SKIPPED").filter(|file| !file.is_empty())
        && let Err(error) = add_line(Path::new(&file), &line)
    {
        panic!("{} can't be written: {error}", Path::new(&file).display());
    }
}

/// `skipped: NAME OF THE TEST: WHY`, a line.
fn skipped(why: &str) -> String {
    format!("skipped: {}: {why}\n", test_name())
}

/// The test that runs now.
fn test_name() -> String {
    // The harness names the thread of a test after it. With `--test-threads=1` tests run on the main thread.
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

/// The function that the harness called, by the names of a backtrace, innermost first: `crate::module::name::{{closure}}`.
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

fn missing_text(missing: &str) -> String {
    format!("{missing} is not installed; ./test.sh does it")
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
        let line = skipped(&missing_text("mosquitto"));
        let expected = "skipped: tests::a_skipped_test_is_named_with_the_reason: mosquitto is not installed; \
                        ./test.sh does it\n";
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
