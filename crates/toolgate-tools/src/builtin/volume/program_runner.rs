//! [`ProgramRunner`]: runs small programs from the `PATH`, with a time limit and bounded output.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(3);
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct ProgramRunner {
    /// Replaces this process's `PATH` if set.
    pub(super) path: Option<OsString>,
    pub(super) variables: Vec<(&'static str, OsString)>,
}

impl ProgramRunner {
    // Ignores relative folders in the PATH: a file in the working directory must not run as a
    // mixer.
    pub(super) fn find(&self, program: &str) -> Option<PathBuf> {
        let path = self.path.clone().or_else(|| env::var_os("PATH"))?;
        env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(program))
            .find(|file| file.is_file())
    }

    /// Returns the program's output, or the reason why it failed.
    pub(super) async fn run(
        &self,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
    ) -> Result<String, String> {
        match timeout(DEADLINE, self.output(program, arguments)).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {} s", DEADLINE.as_secs())),
        }
    }

    // Dropping this at the deadline kills the program.
    async fn output(
        &self,
        program: &Path,
        arguments: &[impl AsRef<OsStr>],
    ) -> io::Result<Result<String, String>> {
        let mut child = Command::new(program)
            .args(arguments)
            // The output is parsed, so it mustn't be translated.
            .env("LC_ALL", "C")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (stdout, stderr) = tokio::try_join!(
            read_bounded(child.stdout.take()),
            read_bounded(child.stderr.take())
        )?;
        let status = child.wait().await?;
        Ok(if status.success() {
            Ok(stdout)
        } else {
            Err(format!("{status}: {}", stderr.trim()))
        })
    }
}

async fn read_bounded(stream: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream
            .take(MAX_OUTPUT_BYTES + 1)
            .read_to_end(&mut bytes)
            .await?;
    }
    if bytes.len() as u64 > MAX_OUTPUT_BYTES {
        return Err(io::Error::other("too much output"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
