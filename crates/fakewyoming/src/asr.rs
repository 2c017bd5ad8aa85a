//! A fake speech-to-text service with scripted transcripts.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::fake::{FakeBehavior, FakeReply, FakeSession, is_a_fake, lock};
use crate::frame::{artifact, event};
use crate::{Fake, ReceivedEvent};

/// A transcription service. Every utterance gets the next text of its script, and an empty
/// one after the end.
pub struct FakeAsr {
    fake: Fake,
    script: Arc<AsrScript>,
}

#[derive(Default)]
struct AsrScript {
    texts: Mutex<VecDeque<String>>,
    utterances: Mutex<Vec<Vec<u8>>>,
    streaming: bool,
}

impl FakeAsr {
    /// Starts a service that sends each transcript as a whole.
    ///
    /// # Panics
    /// If no port is free on the loopback.
    pub async fn start<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::with(texts, false).await
    }

    /// Starts a service that sends each transcript word by word, and then as a whole.
    ///
    /// # Panics
    /// If no port is free on the loopback.
    pub async fn streaming<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::with(texts, true).await
    }

    async fn with<'a>(texts: impl IntoIterator<Item = &'a str>, streaming: bool) -> Self {
        let texts = texts.into_iter().map(str::to_owned).collect();
        let script = Arc::new(AsrScript {
            texts: Mutex::new(texts),
            utterances: Mutex::default(),
            streaming,
        });
        let fake = Fake::start(Arc::clone(&script)).await;
        Self { fake, script }
    }

    /// Appends a text to the script.
    pub fn then(&self, text: &str) {
        lock(&self.script.texts).push_back(text.to_owned());
    }

    /// The audio of every utterance so far, as received.
    pub fn utterances(&self) -> Vec<Vec<u8>> {
        lock(&self.script.utterances).clone()
    }

    /// Forgets events and utterances so far, for a fake that is reused often.
    pub fn forget(&self) {
        self.fake.forget();
        lock(&self.script.utterances).clear();
    }
}

is_a_fake!(FakeAsr);

impl FakeBehavior for Arc<AsrScript> {
    fn info(&self) -> Value {
        let model = artifact("fake-tiny", json!({ "languages": ["en"] }));
        let more = json!({
            "models": [model],
            "supports_transcript_streaming": self.streaming,
            "requires_external_vad": true,
        });
        json!({ "asr": [artifact("fake-asr", more)] })
    }

    fn on(&self, event: &ReceivedEvent, session: &mut FakeSession) -> Result<FakeReply, String> {
        if let Some(utterance) = session.collect_sound(event)? {
            lock(&self.utterances).push(utterance);
            return Ok(FakeReply::Answer(self.next()));
        }
        match event.kind.as_str() {
            "transcribe" | "audio-start" | "audio-chunk" => Ok(FakeReply::Nothing),
            other => Err(format!("'{other}' is nothing for a transcription service")),
        }
    }
}

impl AsrScript {
    fn next(&self) -> Vec<Vec<u8>> {
        let text = lock(&self.texts).pop_front().unwrap_or_default();
        let whole = event(
            "transcript",
            &json!({ "text": text, "language": "en" }),
            &[],
        );
        if !self.streaming {
            return vec![whole];
        }
        let words = text.split_inclusive(' ');
        let chunks = words.map(|word| event("transcript-chunk", &json!({ "text": word }), &[]));
        [event("transcript-start", &json!({}), &[])]
            .into_iter()
            .chain(chunks)
            .chain([whole, event("transcript-stop", &json!({}), &[])])
            .collect()
    }
}
