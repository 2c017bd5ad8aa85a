//! Helpers for MCP tests: they build the program `fakemcp`, find its processes, and
//! locate real MCP servers.

mod conformance;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub use conformance::{
    ConformanceSuite, SKILL_SCENARIOS, ServerProcess, SuiteReport, TASK_SCENARIOS,
};
pub use thirdparty::node;

/// The variable that marks the processes of one test; children inherit it.
pub const MARK: &str = "FAKEMCP_MARK";

/// Returns the program. It is built once per test executable, because cargo gives a test only the
/// programs of its own crate.
///
/// # Panics
/// If it can't be built.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("fakemcp", None))
}

/// Returns an example of a crate, which is built if it isn't up to date.
///
/// # Panics
/// If it can't be built.
pub fn example(package: &str, name: &str) -> PathBuf {
    build(package, Some(name))
}

fn build(package: &str, example: Option<&str>) -> PathBuf {
    try_build(package, example).unwrap_or_else(|problem| panic!("{package}: {problem}"))
}

fn try_build(package: &str, example: Option<&str>) -> Result<PathBuf, String> {
    // A test is target/debug/deps/name-hash.
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own
        .ancestors()
        .nth(2)
        .ok_or("a test is not where cargo puts tests")?;
    let target = folder.parent().ok_or("the target folder is missing")?;
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--quiet", "--offline"])
        .args(["--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    match example {
        // With the features of the whole workspace, as `./test.sh` builds it: with those of one
        // package, cargo would compile half of the dependencies a second time.
        Some(example) => cargo.args(["--workspace", "--example", example]),
        None => cargo.args(["--package", package]),
    };
    let done = cargo.output().map_err(|error| error.to_string())?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    Ok(match example {
        Some(example) => folder.join("examples").join(example),
        None => folder.join(package),
    })
}

/// The folder where `./test.sh` installs real MCP servers. If it is missing, logs that and returns
/// `None`; with `CI=true` panics.
pub fn real_servers() -> Option<PathBuf> {
    thirdparty::MCP_SERVERS.folder()
}

/// Sends a signal, such as `-INT`, through the shell, because a minimal system has no other `kill`.
///
/// # Panics
/// If it can't be sent.
pub fn send_signal(name: &str, pid: u32) {
    let pid = pid.to_string();
    let sent = Command::new("sh")
        .args(["-c", r#"kill "$0" "$1""#, name, &pid])
        .status();
    assert!(
        sent.is_ok_and(|status| status.success()),
        "kill {name} {pid}"
    );
}

/// The processes, without zombies, whose environment carries this mark.
pub fn processes(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let Ok(folder) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|all| {
                all.split(|byte| *byte == 0)
                    .any(|one| one == wanted.as_bytes())
            })
        })
        .collect()
}
