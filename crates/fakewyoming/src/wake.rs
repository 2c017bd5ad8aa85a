//! Hears a wake word when it is told to.

use serde_json::{Value, json};

use crate::fake::{Part, Reply, Session, is_a_fake};
use crate::frame::{artifact, event};
use crate::{Fake, Got};

/// A wake word service.
pub struct FakeWake {
    fake: Fake,
}

struct Ears;

impl FakeWake {
    /// One that knows `hey_jarvis` and `ok_nabu`.
    ///
    /// # Panics
    /// If there is no free port on the loopback.
    pub async fn start() -> Self {
        let fake = Fake::start(Ears).await;
        Self { fake }
    }

    /// Tells every client that sends sound that this was said; if there is none, the next that will.
    pub fn detect(&self, name: &str) {
        let data = json!({ "name": name, "timestamp": 0, "speaker": null });
        self.fake.push(vec![event("detection", &data, &[])]);
    }
}

is_a_fake!(FakeWake);

impl Part for Ears {
    fn info(&self) -> Value {
        let model = |name: &str, phrase: &str| {
            artifact(name, json!({ "languages": ["en"], "phrase": phrase }))
        };
        let models = [
            model("hey_jarvis", "hey jarvis"),
            model("ok_nabu", "okay nabu"),
        ];
        json!({ "wake": [artifact("fake-wake", json!({ "models": models }))] })
    }

    fn on(&self, got: &Got, session: &mut Session) -> Result<Reply, String> {
        if session.hear(got)?.is_some() {
            return Ok(Reply::Answer(vec![event("not-detected", &json!({}), &[])]));
        }
        match got.kind.as_str() {
            "audio-start" => Ok(Reply::Join),
            "detect" | "audio-chunk" => Ok(Reply::Nothing),
            other => Err(format!("'{other}' is nothing for a wake word service")),
        }
    }
}
