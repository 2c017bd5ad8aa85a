//! Where `./test.sh` puts programs that others wrote, for tests against them.
//!
//! A test asks for what it needs and leaves if that is not there:
//!
//! ```no_run
//! let Some(clients) = thirdparty::installed("mcp-clients", &["npm.txt", "pypi.txt"]) else { return };
//! ```

use std::env;
use std::io::Write;
use std::path::PathBuf;

/// A folder of the cache in which all these files are. If one is missing: none, which is said; with `CI=true` a panic.
///
/// # Panics
/// With `CI=true`, if something is missing.
pub fn installed(folder: &str, files: &[&str]) -> Option<PathBuf> {
    let folder = cache().join(folder);
    let mut files = files.iter().map(|file| folder.join(file));
    match files.find(|file| !file.exists()) {
        Some(missing) => skip(&missing.display().to_string()),
        None => Some(folder),
    }
}

/// Whether programs are on the `PATH`. If one is not: no, which is said; with `CI=true` a panic.
///
/// # Panics
/// With `CI=true`, if one is missing.
pub fn has_programs(programs: &[&str]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| env::split_paths(&path).any(|it| it.join(name).is_file());
    match programs.iter().find(|name| !is_there(name)) {
        Some(missing) => skip::<()>(missing).is_some(),
        None => true,
    }
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

fn skip<T>(missing: &str) -> Option<T> {
    let why = format!("{missing} is not installed; ./test.sh does it");
    assert!(env::var("CI").as_deref() != Ok("true"), "{why}");
    // Past the test harness, which hides what passing tests print.
    drop(writeln!(std::io::stderr(), "skipped: {why}"));
    None
}
