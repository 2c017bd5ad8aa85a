//! Runs tests that measure memory in a process of their own.

use std::process::Command;

/// The resident memory of this process, in bytes.
pub(crate) fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = status.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

// The other tests need memory too, so the ignored test runs alone.
pub(crate) fn run_isolated(test: &str) {
    let this = std::env::current_exe().unwrap();
    let output = Command::new(this)
        .args(["--ignored", "--exact", test])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed; 0 failed"), "{said}");
}
