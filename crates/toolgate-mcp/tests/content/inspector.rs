//! The inspector's `mcpdo` as a client. A command that causes a question ends with it, and a
//! second command answers it.

use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use thirdparty::Inspector;

/// A connection of the inspector. The process that holds it ends with it.
pub(crate) struct InspectorClient {
    inspector: Inspector,
    home: TempDir,
}

impl InspectorClient {
    /// Connects in an era: `legacy` or `modern`.
    pub(crate) async fn connect(inspector: &Inspector, url: &str, era: &str) -> Self {
        let client = Self {
            inspector: inspector.clone(),
            home: tempfile::tempdir().unwrap(),
        };
        let connect = ["connect", url, "--era", era, "--connection", "gate"];
        let connected = client.run(&connect).await;
        assert_eq!(connected["protocolEra"], era, "{connected}");
        client
    }

    /// Runs a command on the connection.
    pub(crate) async fn ask(&self, command: &[&str]) -> Value {
        self.run(&[&["@gate"], command].concat()).await
    }

    /// Runs a command that causes a question, and answers it. Returns the question and the result.
    pub(crate) async fn answer(&self, command: &[&str], answer: &[&str]) -> (Value, Value) {
        let mut asked = self.ask(command).await;
        let question = asked["elicitationPending"].take();
        let id = question["elicitationId"].as_str();
        let id = id.unwrap_or_else(|| panic!("no question: {asked}"));
        let respond = ["elicitation/respond", id];
        let result = self.run(&[&respond, answer].concat()).await;
        (question, result)
    }

    async fn run(&self, arguments: &[&str]) -> Value {
        let mut command = self.inspector.mcpdo(self.home.path());
        command.args(arguments);
        // Without a terminal it asks nobody itself.
        command.stdin(Stdio::null());
        let done = tokio::process::Command::from(command).output().await;
        let Output {
            status,
            stdout,
            stderr,
        } = done.unwrap();
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{arguments:?}: {said}");
        serde_json::from_slice(&stdout).unwrap_or_else(|problem| panic!("{problem}: {said}"))
    }
}

impl Drop for InspectorClient {
    fn drop(&mut self) {
        let mut stop = self.inspector.mcpdo(self.home.path());
        drop(stop.args(["daemon", "stop"]).output());
    }
}
