//! A fake microphone that sends audio as fast as it is read.

use serde_json::{Value, json};

use crate::fake::{FakeBehavior, FakeReply, FakeSession, is_a_fake};
use crate::frame::{artifact, chunks, event, format_of, pcm};
use crate::{Fake, ReceivedEvent};

/// The sample rate in Hz.
pub(crate) const RATE: u32 = 16_000;
pub(crate) const CHUNK: usize = 2_048;

/// A microphone service: 16-bit mono at 16 kHz in chunks of 1024 samples,
/// to everybody who connects.
pub struct FakeMic {
    fake: Fake,
}

struct MicBehavior;

impl FakeMic {
    /// Starts a microphone that sends only what it is given.
    ///
    /// # Panics
    /// If no port is free on the loopback.
    pub async fn start() -> Self {
        let fake = Fake::start(MicBehavior).await;
        Self { fake }
    }

    /// Sends audio to all connected clients, or to the first that connects.
    pub fn hear(&self, samples: &[i16]) {
        self.fake.push(chunks(RATE, &pcm(samples), CHUNK));
    }

    pub fn stop(&self) {
        self.fake.push(vec![event(
            "audio-stop",
            &json!({ "timestamp": null }),
            &[],
        )]);
    }

    pub fn raw(&self, bytes: &[u8]) {
        self.fake.push(vec![bytes.to_vec()]);
    }
}

is_a_fake!(FakeMic);

impl FakeBehavior for MicBehavior {
    fn info(&self) -> Value {
        json!({ "mic": [artifact("fake-mic", json!({ "mic_format": format() }))] })
    }

    fn greet(&self) -> Vec<FakeReply> {
        let start = event("audio-start", &format_of(RATE), &[]);
        vec![FakeReply::Now(vec![start]), FakeReply::Join]
    }

    fn on(&self, got: &ReceivedEvent, _session: &mut FakeSession) -> Result<FakeReply, String> {
        Err(format!("'{}' is nothing for a microphone", got.kind))
    }
}

fn format() -> Value {
    json!({ "rate": RATE, "width": 2, "channels": 1 })
}
