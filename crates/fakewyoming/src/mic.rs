//! Gives sound, as fast as it is taken.

use serde_json::{Value, json};

use crate::fake::{Part, Reply, Session, is_a_fake};
use crate::frame::{artifact, chunks, event, format_of, pcm};
use crate::{Fake, Got};

/// What a microphone has.
pub(crate) const RATE: u32 = 16_000;
/// 1024 samples.
pub(crate) const CHUNK: usize = 2_048;

/// A microphone service: 16-bit mono at 16 kHz in chunks of 1024 samples, to everybody who connects.
pub struct FakeMic {
    fake: Fake,
}

struct Microphone;

impl FakeMic {
    /// A silent one: it sends what it is given.
    ///
    /// # Panics
    /// If there is no free port on the loopback.
    pub async fn start() -> Self {
        let fake = Fake::start(Microphone).await;
        Self { fake }
    }

    /// Sends sound to whoever is connected, or to the first who will be.
    pub fn hear(&self, samples: &[i16]) {
        self.fake.push(chunks(RATE, &pcm(samples), CHUNK));
    }

    /// Sends the end of sound.
    pub fn stop(&self) {
        self.fake.push(vec![event(
            "audio-stop",
            &json!({ "timestamp": null }),
            &[],
        )]);
    }

    /// Sends any bytes.
    pub fn raw(&self, bytes: &[u8]) {
        self.fake.push(vec![bytes.to_vec()]);
    }
}

is_a_fake!(FakeMic);

impl Part for Microphone {
    fn info(&self) -> Value {
        json!({ "mic": [artifact("fake-mic", json!({ "mic_format": format() }))] })
    }

    fn greet(&self) -> Vec<Reply> {
        let start = event("audio-start", &format_of(RATE), &[]);
        vec![Reply::Now(vec![start]), Reply::Join]
    }

    fn on(&self, got: &Got, _session: &mut Session) -> Result<Reply, String> {
        Err(format!("'{}' is nothing for a microphone", got.kind))
    }
}

fn format() -> Value {
    json!({ "rate": RATE, "width": 2, "channels": 1 })
}
