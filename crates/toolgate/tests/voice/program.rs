//! `toolgate voice`, started in a folder of its own.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::engines::pause;

/// Only a hang takes longer.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) struct VoiceFolder(TempDir);

impl VoiceFolder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Answers a sound file with this configuration. Returns the file of the spoken answer too.
    pub(crate) fn answered(&self, config: &Value, wav: &Path) -> (VoiceRun, PathBuf) {
        let answer = self.path("answer.wav");
        let [wav, out] = [wav, &answer].map(|file| file.to_str().unwrap());
        let done = self.start(config, &["--wav", wav, "--out", out]).ended();
        (done, answer)
    }

    /// Starts the gateway with this configuration.
    pub(crate) fn start(&self, config: &Value, arguments: &[&str]) -> VoiceProcess {
        let file = self.path("toolgate.json");
        std::fs::write(&file, config.to_string()).unwrap();
        let log = self.path("log.txt");
        let said = std::fs::File::create(&log).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_toolgate"))
            .arg("--config")
            .arg(&file)
            .args(["voice", "--json"])
            .args(arguments)
            .current_dir(self.0.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.0.path())
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said)
            .spawn()
            .unwrap();
        VoiceProcess { child, log }
    }
}

/// A running gateway. Killed when it is dropped.
pub(crate) struct VoiceProcess {
    pub(crate) child: Child,
    log: PathBuf,
}

/// The results of a gateway that has ended.
pub(crate) struct VoiceRun {
    pub(crate) code: Option<i32>,
    /// One object for each turn.
    pub(crate) turns: Vec<Value>,
    pub(crate) log: String,
}

impl VoiceProcess {
    pub(crate) fn log(&self) -> String {
        read(&self.log)
    }

    /// Waits until the log contains this text.
    pub(crate) fn until(&self, said: &str) {
        for _ in 0..PATIENCE.as_millis() / 50 {
            if self.log().contains(said) {
                return;
            }
            pause(50);
        }
        panic!("it does not say {said:?}:\n{}", self.log());
    }

    /// Waits until it exits.
    pub(crate) fn ended(mut self) -> VoiceRun {
        drop(self.child.stdin.take());
        let mut out = String::new();
        let code = (0..PATIENCE.as_millis() / 50).find_map(|_| {
            pause(50);
            self.child.try_wait().unwrap()
        });
        let Some(code) = code else {
            panic!("it does not end:\n{}", self.log());
        };
        let mut stdout = self.child.stdout.take().unwrap();
        stdout.read_to_string(&mut out).unwrap();
        let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
        let turns = lines.filter(|line: &Value| line["outcome"] != "dropped");
        VoiceRun {
            code: code.code(),
            turns: turns.collect(),
            log: self.log(),
        }
    }
}

impl Drop for VoiceProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read(file: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned()
}
