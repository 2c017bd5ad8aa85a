//! A fake satellite: a microphone and a loudspeaker in a room.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::fake::{FakeBehavior, FakeReply, FakeSession, deref_to_fake};
use crate::frame::{encode_chunks, encode_event, info_entry, pcm_bytes};
use crate::mic::{CHUNK, RATE};
use crate::{Fake, ReceivedEvent};

/// A satellite. It sends nothing before `run-satellite`, records the speech it receives,
/// and then sends `played`.
pub struct FakeSatellite {
    fake: Fake,
    behavior: Arc<SatelliteBehavior>,
}

struct SatelliteBehavior {
    area: String,
    heard: Mutex<Vec<Vec<u8>>>,
}

impl FakeSatellite {
    /// Starts a satellite in an area.
    ///
    /// # Panics
    /// If no port is free on the loopback.
    pub async fn start(area: &str) -> Self {
        let behavior = Arc::new(SatelliteBehavior {
            area: area.to_owned(),
            heard: Mutex::default(),
        });
        let fake = Fake::start(Arc::clone(&behavior)).await;
        Self { fake, behavior }
    }

    /// Reports its own wake word, which starts a pipeline. Sound may follow.
    pub fn wake(&self, name: &str) {
        let detection = json!({ "name": name, "timestamp": 0, "speaker": null });
        let pipeline = json!({
            "start_stage": "asr",
            "end_stage": "tts",
            "restart_on_end": false,
            "wake_word_name": name,
        });
        self.fake.push(vec![
            encode_event("detection", &detection, &[]),
            encode_event("run-pipeline", &pipeline, &[]),
            encode_event("streaming-started", &json!({}), &[]),
        ]);
    }

    /// Starts a pipeline for all sound, as a satellite without a wake word does.
    pub fn stream(&self) {
        let pipeline = json!({ "start_stage": "wake", "end_stage": "tts", "restart_on_end": true });
        self.fake.push(vec![
            encode_event("run-pipeline", &pipeline, &[]),
            encode_event("streaming-started", &json!({}), &[]),
        ]);
    }

    /// Sends 16-bit mono at 16 kHz.
    pub fn send_sound(&self, samples: &[i16]) {
        self.fake
            .push(encode_chunks(RATE, &pcm_bytes(samples), CHUNK));
    }

    pub fn ping(&self, text: &str) {
        self.fake
            .push(vec![encode_event("ping", &json!({ "text": text }), &[])]);
    }

    /// Sends bytes that need not be an event.
    pub fn send_raw(&self, bytes: &[u8]) {
        self.fake.push(vec![bytes.to_vec()]);
    }

    /// The audio its loudspeaker has received, from start to stop, as bytes.
    pub fn heard(&self) -> Vec<Vec<u8>> {
        self.behavior.heard.lock().clone()
    }
}

deref_to_fake!(FakeSatellite);

impl FakeBehavior for Arc<SatelliteBehavior> {
    fn info(&self) -> Value {
        let format = json!({ "rate": RATE, "width": 2, "channels": 1 });
        let more = json!({
            "area": self.area,
            "has_vad": false,
            "active_wake_words": ["hey_jarvis"],
            "max_active_wake_words": 1,
            "supports_trigger": true,
        });
        json!({
            "mic": [info_entry("fake-mic", json!({ "mic_format": format }))],
            "snd": [info_entry("fake-snd", json!({ "snd_format": format }))],
            "satellite": info_entry("fake-satellite", more),
        })
    }

    fn reply_to(
        &self,
        got: &ReceivedEvent,
        session: &mut FakeSession,
    ) -> Result<FakeReply, String> {
        if let Some(speech) = session.collect_sound(got)? {
            self.heard.lock().push(speech);
            return Ok(FakeReply::Answer(vec![encode_event(
                "played",
                &json!({}),
                &[],
            )]));
        }
        match got.kind.as_str() {
            "run-satellite" => Ok(FakeReply::Join),
            "audio-start" | "audio-chunk" | "pause-satellite" | "detection" | "not-detected"
            | "transcribe" | "transcript" | "synthesize" | "voice-started" | "voice-stopped"
            | "detect" | "error" | "pong" | "handled" | "not-handled" => Ok(FakeReply::Nothing),
            other => Err(format!("a satellite doesn't take '{other}'")),
        }
    }
}
