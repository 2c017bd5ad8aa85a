//! Where models and clients are that others wrote.

use std::path::PathBuf;

/// The folder where `./test.sh` installs them. If it has not: none, which is said; with `CI=true` a panic.
///
/// # Panics
/// With `CI=true`, if they are not there.
#[expect(clippy::print_stderr, reason = "a test says what it leaves out")]
pub fn third_parties() -> Option<PathBuf> {
    let folder = |name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(value))
    };
    let cache = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    let models = folder("TOOLGATE_TEST_CACHE")
        .or_else(|| Some(cache()?.join("toolgate-tests")))?
        .join("models");
    if ["npm.txt", "pypi.txt", "model.txt"]
        .iter()
        .all(|list| models.join(list).is_file())
    {
        return Some(models);
    }
    let why = "models of others are not installed: ./test.sh does it";
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
    eprintln!("skipped: {why}");
    None
}
