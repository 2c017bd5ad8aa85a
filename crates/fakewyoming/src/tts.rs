//! A fake text-to-speech service: a tone as long as the text.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::fake::{FakeBehavior, FakeReply, FakeSession, deref_to_fake};
use crate::frame::{encode_audio, info_entry, pcm_bytes};
use crate::{Fake, ReceivedEvent};

/// The sample rate that most voices have.
const RATE: u32 = 22_050;
/// The length of a letter, in samples.
const SAMPLES_PER_LETTER: usize = 1_102;
const CHUNK: usize = 2_048;

/// A speech service: 16-bit mono at 22 050 Hz, a twentieth of a second for every letter.
pub struct FakeTts {
    fake: Fake,
    behavior: Arc<TtsBehavior>,
}

#[derive(Default)]
struct TtsBehavior(Mutex<Vec<String>>);

impl FakeTts {
    /// Starts a service that accepts whole and streamed text.
    ///
    /// # Panics
    /// If no port is free on the loopback.
    pub async fn start() -> Self {
        let behavior = Arc::new(TtsBehavior::default());
        let fake = Fake::start(Arc::clone(&behavior)).await;
        Self { fake, behavior }
    }

    /// Every text it was asked to speak, in order. The pieces of a streamed text are joined.
    pub fn texts(&self) -> Vec<String> {
        self.behavior.0.lock().clone()
    }

    /// Forgets events and texts so far, for a fake that is reused often.
    pub fn forget(&self) {
        self.fake.forget();
        self.behavior.0.lock().clear();
    }

    /// The samples that the service sends for a text.
    pub fn samples_of(text: &str) -> Vec<i16> {
        let step = std::f32::consts::TAU * 440.0 / RATE as f32;
        (0..text.chars().count() * SAMPLES_PER_LETTER)
            .map(|at| ((at as f32 * step).sin() * 8_000.0) as i16)
            .collect()
    }
}

deref_to_fake!(FakeTts);

impl FakeBehavior for Arc<TtsBehavior> {
    fn info(&self) -> Value {
        let voice = info_entry(
            "fake-voice",
            json!({ "languages": ["en"], "speakers": null }),
        );
        let more = json!({ "voices": [voice], "supports_synthesize_streaming": true });
        json!({ "tts": [info_entry("fake-tts", more)] })
    }

    fn reply_to(
        &self,
        event: &ReceivedEvent,
        session: &mut FakeSession,
    ) -> Result<FakeReply, String> {
        let text = || match event.data["text"].as_str() {
            Some(text) => Ok(text),
            None => Err(format!("'{}' has no text", event.kind)),
        };
        match event.kind.as_str() {
            "synthesize-start" => match session.text.replace(String::new()) {
                None => Ok(FakeReply::Nothing),
                Some(_) => Err("'synthesize-start' came twice".to_owned()),
            },
            "synthesize-chunk" => match &mut session.text {
                Some(all) => {
                    all.push_str(text()?);
                    Ok(FakeReply::Nothing)
                }
                None => Err("'synthesize-chunk' came before 'synthesize-start'".to_owned()),
            },
            // The whole text again, for services that don't stream.
            "synthesize" if session.text.is_some() => Ok(FakeReply::Nothing),
            "synthesize" => Ok(FakeReply::Answer(self.speak(text()?))),
            "synthesize-stop" => match session.text.take() {
                Some(text) => {
                    let mut answer = self.speak(&text);
                    answer.push(crate::frame::encode_event(
                        "synthesize-stopped",
                        &json!({}),
                        &[],
                    ));
                    Ok(FakeReply::Answer(answer))
                }
                None => Err("'synthesize-stop' came before 'synthesize-start'".to_owned()),
            },
            other => Err(format!("a speech service doesn't take '{other}'")),
        }
    }
}

impl TtsBehavior {
    fn speak(&self, text: &str) -> Vec<Vec<u8>> {
        self.0.lock().push(text.to_owned());
        encode_audio(RATE, &pcm_bytes(&FakeTts::samples_of(text)), CHUNK)
    }
}
