//! A fake microphone that sends audio as fast as it is read.

use serde_json::{Value, json};

use crate::fake::{FakeBehavior, FakeReply, FakeSession, deref_to_fake};
use crate::frame::{audio_format, encode_chunks, encode_event, info_entry, pcm_bytes};
use crate::{Fake, ReceivedEvent};

/// The sample rate in Hz.
pub(crate) const RATE: u32 = 16_000;
pub(crate) const CHUNK: usize = 2_048;

/// A microphone service. It sends 16-bit mono at 16 kHz, in chunks of 1024 samples, to
/// every client that connects.
pub struct FakeMic {
    fake: Fake,
}

struct MicBehavior;

impl FakeMic {
    /// Starts a microphone that sends only the sound passed to [`send_sound`](Self::send_sound).
    ///
    /// # Panics
    /// If no port is free on the loopback.
    pub async fn start() -> Self {
        let fake = Fake::start(MicBehavior).await;
        Self { fake }
    }

    /// Sends audio to all connected clients, or to the first that connects.
    pub fn send_sound(&self, samples: &[i16]) {
        self.fake
            .push(encode_chunks(RATE, &pcm_bytes(samples), CHUNK));
    }

    pub fn send_audio_stop(&self) {
        self.fake.push(vec![encode_event(
            "audio-stop",
            &json!({ "timestamp": null }),
            &[],
        )]);
    }

    /// Sends bytes that need not be an event, to all connected clients.
    pub fn send_raw(&self, bytes: &[u8]) {
        self.fake.push(vec![bytes.to_vec()]);
    }
}

deref_to_fake!(FakeMic);

impl FakeBehavior for MicBehavior {
    fn info(&self) -> Value {
        json!({ "mic": [info_entry("fake-mic", json!({ "mic_format": format() }))] })
    }

    fn greet(&self) -> Vec<FakeReply> {
        let start = encode_event("audio-start", &audio_format(RATE), &[]);
        vec![FakeReply::Now(vec![start]), FakeReply::Join]
    }

    fn reply_to(
        &self,
        got: &ReceivedEvent,
        _session: &mut FakeSession,
    ) -> Result<FakeReply, String> {
        Err(format!("a microphone doesn't take '{}'", got.kind))
    }
}

fn format() -> Value {
    json!({ "rate": RATE, "width": 2, "channels": 1 })
}
