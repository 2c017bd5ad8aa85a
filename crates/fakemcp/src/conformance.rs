//! The official conformance suites, and the processes that they talk to.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{node, real_servers};

const PACKAGE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
/// The folder of the suite that isn't released yet, which is optional.
const NEXT: &str = "mcp-next";

/// The scenarios of the tasks extension, and how many checks each has. No set of requirements
/// scores them, so their failures fail no run but their own.
pub const TASK_SCENARIOS: [(&str, usize); 10] = [
    ("tasks-lifecycle", 9),
    ("tasks-capability-negotiation", 5),
    ("tasks-wire-fields", 4),
    ("tasks-request-state-removal", 3),
    ("tasks-mrtr-input", 4),
    ("tasks-request-headers", 5),
    ("tasks-dispatch-and-envelope", 9),
    // The suite skips it by itself so far.
    ("tasks-status-notifications", 0),
    ("tasks-required-task-error", 3),
    ("tasks-mrtr-composition", 2),
];
/// Like [`TASK_SCENARIOS`], of the skills extension.
pub const SKILL_SCENARIOS: [(&str, usize); 3] = [
    ("sep-2640-skills-enumeration", 32),
    ("sep-2640-skills-directory", 7),
    ("sep-2640-skills-manifest", 6),
];

/// A suite that `./test.sh` installs.
pub struct ConformanceSuite {
    folder: PathBuf,
    node: PathBuf,
}

/// What a run of a suite printed.
pub struct SuiteReport {
    pub output: String,
    /// True if exactly the scenarios of the baseline failed.
    pub is_expected: bool,
}

impl ConformanceSuite {
    /// The released suite. `None` if it isn't installed, which skips the test.
    pub fn released() -> Option<Self> {
        let folder = real_servers()?;
        let node = node(&folder);
        Some(Self { folder, node })
    }

    /// The suite with the scenarios of 2026-07-28.
    pub fn next() -> Option<Self> {
        let released = Self::released()?;
        let folder = released.folder.with_file_name(NEXT);
        if !folder.join("npm.txt").exists() {
            thirdparty::skip_optional("the next conformance suite (./test.sh installs it)");
            return None;
        }
        Some(Self { folder, ..released })
    }

    /// Runs a half of the suite, `client` or `server`, with these arguments. With
    /// `--requirements`, the baseline is compared only with the scenarios that count towards them;
    /// assert the others by name.
    ///
    /// # Panics
    /// If it can't be started.
    pub fn run(&self, half: &str, arguments: &[&str], baseline: &Path) -> SuiteReport {
        let done = Command::new(&self.node)
            .arg(self.folder.join(PACKAGE))
            .arg(half)
            .args(arguments)
            .arg("--expected-failures")
            .arg(baseline)
            .output();
        let done = done.unwrap_or_else(|error| panic!("the conformance suite: {error}"));
        let output = [done.stdout, done.stderr].concat();
        SuiteReport {
            output: String::from_utf8_lossy(&output).into_owned(),
            is_expected: done.status.success(),
        }
    }

    /// Starts the suite's own server, which both eras can use.
    ///
    /// # Panics
    /// If it can't be started.
    pub fn reference_server(&self) -> Option<ServerProcess> {
        let script = self.folder.join("everything-server.ts");
        if !script.exists() {
            thirdparty::skip_optional(
                "the server of the conformance suite (./test.sh installs it)",
            );
            return None;
        }
        let port = free_port();
        let mut command = Command::new(&self.node);
        command
            .arg("--import")
            .arg(self.folder.join("node_modules/tsx/dist/loader.mjs"))
            .arg(script)
            .env("PORT", port.to_string());
        let mut server = ServerProcess::start(command);
        server.url = format!("http://localhost:{port}/mcp");
        Some(server)
    }
}

/// A port that was free a moment ago, for programs that can't choose one themselves.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0");
    let address = listener.and_then(|listener| listener.local_addr());
    address.map_or_else(|error| panic!("no port is free: {error}"), |it| it.port())
}

impl SuiteReport {
    /// Fails unless exactly the scenarios of the baseline failed, and these passed with at least so
    /// many checks. The suite calls a scenario in which nothing was checked a success.
    ///
    /// # Panics
    /// Unless all of it is so.
    pub fn assert_passed(&self, scenarios: &[(&str, usize)]) {
        assert!(self.is_expected, "{}", self.failures());
        for (scenario, least) in scenarios {
            let passed = self.passed(scenario);
            assert!(passed >= Some(*least), "{scenario}: {passed:?} of {least}");
        }
    }

    /// Fails unless the only scenario of the run passed this many checks.
    ///
    /// # Panics
    /// Unless it did.
    pub fn assert_checks(&self, passed: usize) {
        let summary = format!("Passed: {passed}/{passed}, 0 failed, 0 warnings");
        assert!(self.output.contains(&summary), "{}", self.output);
    }

    /// The number of checks that a scenario passed; `None` if one failed or it didn't run.
    fn passed(&self, scenario: &str) -> Option<usize> {
        let start = format!("✓ {scenario}: ");
        let summary = self
            .output
            .lines()
            .find_map(|line| line.strip_prefix(&start))?;
        let (passed, rest) = summary.split_once(" passed, ")?;
        rest.starts_with("0 failed").then_some(())?;
        passed.parse().ok()
    }

    /// The end of the report, which names what failed, and the reasons.
    fn failures(&self) -> String {
        let is_reason = |line: &&str| line.contains("errorMessage") || line.contains("Failed");
        let reasons: Vec<&str> = self.output.lines().filter(is_reason).collect();
        reasons.join("\n") + "\n" + self.summary()
    }

    /// One line for each scenario, and what differs from the baseline.
    pub fn summary(&self) -> &str {
        let start = self.output.rfind("SUMMARY").unwrap_or_default();
        &self.output[start..]
    }
}

/// A server over HTTP in another process.
pub struct ServerProcess {
    child: Child,
    pub url: String,
}

impl ServerProcess {
    /// Our server with the tools that the suite expects.
    ///
    /// # Panics
    /// If it can't be started.
    pub fn example() -> Self {
        let program = crate::example("toolgate-mcp", "conformance_server");
        Self::start(Command::new(program))
    }

    /// Waits for the first line, which is the URL of our own server.
    fn start(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = match command.stderr(Stdio::null()).spawn() {
            Ok(child) => child,
            Err(error) => panic!("{command:?}: {error}"),
        };
        let mut url = String::new();
        if let Some(output) = child.stdout.take() {
            let mut lines = BufReader::new(output);
            drop(lines.read_line(&mut url));
            // Others print more, and would stop if nobody read it.
            std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        }
        let url = url.trim().to_owned();
        assert!(!url.is_empty(), "{command:?} printed nothing");
        Self { child, url }
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
