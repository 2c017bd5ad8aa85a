//! A fake wake word service that detects on command.

use serde_json::{Value, json};

use crate::fake::{FakeBehavior, FakeReply, FakeSession, deref_to_fake};
use crate::frame::{encode_event, info_entry};
use crate::{Fake, ReceivedEvent};

/// A wake word service, which ignores the sound and detects on command.
pub struct FakeWake {
    fake: Fake,
}

struct WakeBehavior;

impl FakeWake {
    /// Starts a service that knows `hey_jarvis` and `ok_nabu`.
    ///
    /// # Panics
    /// If no port is free on the loopback.
    pub async fn start() -> Self {
        let fake = Fake::start(WakeBehavior).await;
        Self { fake }
    }

    /// Reports this wake word to every client that sends audio or, if there is none, to
    /// the next that does.
    pub fn detect(&self, name: &str) {
        let data = json!({ "name": name, "timestamp": 0, "speaker": null });
        self.fake.push(vec![encode_event("detection", &data, &[])]);
    }
}

deref_to_fake!(FakeWake);

impl FakeBehavior for WakeBehavior {
    fn info(&self) -> Value {
        let model = |name: &str, phrase: &str| {
            info_entry(name, json!({ "languages": ["en"], "phrase": phrase }))
        };
        let models = [
            model("hey_jarvis", "hey jarvis"),
            model("ok_nabu", "okay nabu"),
        ];
        json!({ "wake": [info_entry("fake-wake", json!({ "models": models }))] })
    }

    fn reply_to(
        &self,
        got: &ReceivedEvent,
        session: &mut FakeSession,
    ) -> Result<FakeReply, String> {
        if session.collect_sound(got)?.is_some() {
            return Ok(FakeReply::Answer(vec![encode_event(
                "not-detected",
                &json!({}),
                &[],
            )]));
        }
        match got.kind.as_str() {
            "audio-start" => Ok(FakeReply::Join),
            "detect" | "audio-chunk" => Ok(FakeReply::Nothing),
            other => Err(format!("a wake word service doesn't take '{other}'")),
        }
    }
}
