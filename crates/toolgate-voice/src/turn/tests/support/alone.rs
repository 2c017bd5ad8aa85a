//! Tests that measure the memory of their process run alone in one.

use std::process::Command;

/// How many bytes of memory this process has.
pub(crate) fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = status.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Runs a test that is ignored, in a process of its own: the other tests need memory too.
pub(crate) fn alone(test: &str) {
    let this = std::env::current_exe().unwrap();
    let output = Command::new(this)
        .args(["--ignored", "--exact", test])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed; 0 failed"), "{said}");
}
