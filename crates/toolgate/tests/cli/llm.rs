//! A test double of all providers, for tests that run the program.

use std::time::Duration;

use fakellm::{Answer, FakeLlm, FakeModel, RecordedRequest, Script};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::run::ProgramRun;

/// Must never appear in any output.
pub(crate) const KEY: &str = "sentinel-key-5e1f";
/// Ten times as long as anything should take.
pub(crate) const HANG: Duration = Duration::from_secs(30);
pub(crate) const PROVIDERS: [&str; 4] = ["anthropic", "ollama", "openai", "gemini"];

/// The test double, and the runtime it runs on.
pub(crate) struct ScriptedLlm {
    runtime: Runtime,
    fake: FakeLlm,
}

impl ScriptedLlm {
    /// Gives these answers in order.
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::scripted(Script::new(answers))
    }

    pub(crate) fn scripted(script: Script) -> Self {
        let runtime = Runtime::new().unwrap();
        let fake = runtime.block_on(FakeLlm::with_model(script, FakeModel::new("qwen3:0.6b")));
        Self { runtime, fake }
    }

    pub(crate) fn url(&self) -> &str {
        self.fake.url()
    }

    /// The chat requests. Fails if any was invalid.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        assert_eq!(self.fake.refusals(), Vec::<String>::new());
        self.fake.requests()
    }

    /// Waits until this many questions have arrived.
    pub(crate) fn asked(&self, count: usize) {
        self.wait(self.fake.wait_for_requests(count));
    }

    /// Waits until this many clients have disconnected from their answers.
    pub(crate) fn left(&self, count: usize) {
        self.wait(self.fake.wait_for_disconnects(count));
    }

    fn wait(&self, event: impl Future<Output = ()>) {
        let guarded = self
            .runtime
            .block_on(async { tokio::time::timeout(HANG, event).await });
        guarded.unwrap();
    }

    /// The environment variables that point a run to this double.
    pub(crate) fn known_to(&self, run: ProgramRun, provider: &str) -> ProgramRun {
        match provider {
            "anthropic" => run
                .env("ANTHROPIC_API_KEY", KEY)
                .env("ANTHROPIC_BASE_URL", self.url()),
            "openai" => run
                .env("OPENAI_API_KEY", KEY)
                .env("OPENAI_BASE_URL", &format!("{}/v1", self.url())),
            "gemini" => run
                .env("GOOGLE_API_KEY", KEY)
                .env("GEMINI_BASE_URL", self.url()),
            _ => run.env("OLLAMA_HOST", self.url()),
        }
    }

    /// A run that uses this double through the API of one provider.
    pub(crate) fn ask(&self, provider: &str, arguments: &[&str]) -> ProgramRun {
        let run = ProgramRun::new(["ask", "--provider", provider, "--model", "qwen3:0.6b"])
            .args(arguments);
        self.known_to(run, provider)
    }
}

/// A run that finds no Ollama.
pub(crate) fn alone(run: ProgramRun) -> ProgramRun {
    run.env("OLLAMA_HOST", "127.0.0.1:1")
}

/// A call of a tool whose answer never changes.
pub(crate) fn weekday_call() -> Answer {
    Answer::call("call_1", "datetime", &weekday())
}

/// Asks for a tool, then answers.
pub(crate) fn weekday_script() -> [Answer; 2] {
    [weekday_call(), Answer::text("It was a Saturday.")]
}

pub(crate) fn weekday() -> Value {
    json!({ "action": "weekday", "date": "1982-04-24" })
}
