//! Third-party speech engines as processes.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fakewyoming::WyomingTestClient;
use serde_json::json;

/// Loading a model takes a while on a busy machine, but only a hang takes this long.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running engine. Killed when it is dropped.
pub(crate) struct EngineProcess {
    child: Child,
    address: SocketAddr,
}

impl EngineProcess {
    /// Whisper, with its smallest model for English.
    pub(crate) fn whisper() -> Option<Self> {
        let folder = thirdparty::SPEECH.folder()?;
        let python = folder.join("asr/bin/python");
        let model = folder.join("model");
        Some(Self::start(
            &python,
            "wyoming_faster_whisper",
            &[
                "--model",
                model.to_str().unwrap(),
                "--data-dir",
                folder.to_str().unwrap(),
                "--language",
                "en",
                "--stt-library",
                "faster-whisper",
                "--local-files-only",
            ],
        ))
    }

    /// openWakeWord, which hears "hey jarvis" and some other names.
    pub(crate) fn open_wake_word() -> Option<Self> {
        let python = thirdparty::SPEECH.folder()?.join("wake/bin/python");
        let module = "wyoming_openwakeword";
        Some(Self::start(&python, module, &["--threshold", "0.3"]))
    }

    fn start(python: &Path, module: &str, arguments: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap();
        drop(port);
        let mut child = Command::new(python)
            .args(["-m", module, "--uri", &format!("tcp://{address}")])
            .args(arguments)
            .env("HF_HUB_OFFLINE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        for _ in 0..PATIENCE.as_millis() / 50 {
            if TcpStream::connect(address).is_ok() {
                return Self { child, address };
            }
            if child.try_wait().unwrap().is_some() {
                break;
            }
            pause(50);
        }
        drop(child.kill());
        let mut said = String::new();
        drop(child.stderr.take().unwrap().read_to_string(&mut said));
        panic!("{module} does not start:\n{said}");
    }

    pub(crate) fn address(&self) -> String {
        format!("tcp://{}", self.address)
    }

    /// The transcript by Whisper, in lower case without punctuation.
    pub(crate) async fn understands(&self, wav: &Path) -> String {
        let mut reader = hound::WavReader::open(wav).unwrap();
        let spec = reader.spec();
        let samples: Vec<i16> = reader.samples().map(Result::unwrap).collect();
        let format = json!({ "rate": spec.sample_rate, "width": 2, "channels": spec.channels });
        let bytes: Vec<u8> = samples.iter().flat_map(|one| one.to_le_bytes()).collect();
        let mut client = WyomingTestClient::connect(&self.address()).await.unwrap();
        client.send("audio-start", &format, &[]).await.unwrap();
        for bytes in bytes.chunks(4096) {
            client.send("audio-chunk", &format, bytes).await.unwrap();
        }
        client.send("audio-stop", &json!({}), &[]).await.unwrap();
        let waiting = client.wait_for(&["transcript"]);
        let transcript = tokio::time::timeout(PATIENCE, waiting).await.unwrap();
        plain(transcript.unwrap().data["text"].as_str().unwrap())
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn plain(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == ' ' || c == ':';
    let text = text.to_lowercase();
    text.chars().filter(|c| is_word(*c)).collect::<String>()
}

/// Speaks into a file.
pub(crate) fn speak(text: &str, wav: &Path) {
    let done = Command::new("espeak-ng")
        .args(["-v", "en-us", "-s", "140", "-w"])
        .arg(wav)
        .args(["--", text])
        .status()
        .unwrap();
    assert!(done.success());
}

/// Polls, because there is no other way to wait for a process.
#[expect(clippy::disallowed_methods, reason = "nothing here is async")]
pub(crate) fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}
