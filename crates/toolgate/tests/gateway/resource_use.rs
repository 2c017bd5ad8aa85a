//! How much a test does, which `./test.sh soak` raises, and the resources the gateway uses for it.

use std::fmt;

use crate::support::{ServeProcess, pause};

/// Files and threads that come and go: the journal's, and those of blocking tasks.
const SPARE: usize = 8;

/// The number in the variable, or else the smallest useful one.
pub(crate) fn size(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |size| size.parse().unwrap())
}

/// Prints a line, which `./test.sh soak` shows.
#[expect(clippy::print_stdout, reason = "a test's, which cargo keeps back")]
pub(crate) fn print_line(line: &str) {
    println!("figures: {line}");
}

/// The system resources of the gateway's process.
#[derive(Clone, Copy)]
pub(crate) struct ProcessUse {
    /// Kibibytes of resident memory.
    pub(crate) memory: usize,
    pub(crate) files: usize,
    pub(crate) threads: usize,
}

impl ProcessUse {
    pub(crate) fn of(gateway: &ServeProcess) -> Self {
        let folder = format!("/proc/{}", gateway.child.id());
        let status = std::fs::read_to_string(format!("{folder}/status")).unwrap();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            number.unwrap().parse().unwrap()
        };
        Self {
            memory: number("VmRSS:"),
            files: std::fs::read_dir(format!("{folder}/fd")).unwrap().count(),
            threads: number("Threads:"),
        }
    }

    /// Waits until the gateway has no more files and threads than before.
    pub(crate) fn again(gateway: &ServeProcess, before: Self) -> Self {
        for _ in 0..600 {
            let now = Self::of(gateway);
            if now.files <= before.files + SPARE && now.threads <= before.threads + SPARE {
                return now;
            }
            pause(50);
        }
        panic!("{before} before, and now {}", Self::of(gateway));
    }
}

impl fmt::Display for ProcessUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = self.memory as f64 / 1024.0;
        let (files, threads) = (self.files, self.threads);
        write!(f, "{memory:.1} MiB, {files} files, {threads} threads")
    }
}
