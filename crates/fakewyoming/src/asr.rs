//! A fake speech-to-text service with scripted transcripts.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::fake::{FakeBehavior, FakeReply, FakeSession, deref_to_fake};
use crate::frame::{encode_event, info_entry};
use crate::{Fake, ReceivedEvent};

/// A speech-to-text service. It answers each utterance with the next text of its script, and with
/// empty text after the last one.
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
        Self::start_with(texts, false).await
    }

    /// Starts a service that sends each transcript word by word, and then as a whole.
    ///
    /// # Panics
    /// If no port is free on the loopback.
    pub async fn start_streaming<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::start_with(texts, true).await
    }

    async fn start_with<'a>(texts: impl IntoIterator<Item = &'a str>, streaming: bool) -> Self {
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
    pub fn push_text(&self, text: &str) {
        self.script.texts.lock().push_back(text.to_owned());
    }

    /// The audio of every utterance so far, as received.
    pub fn utterances(&self) -> Vec<Vec<u8>> {
        self.script.utterances.lock().clone()
    }

    /// Forgets events and utterances so far, for a fake that is reused often.
    pub fn forget(&self) {
        self.fake.forget();
        self.script.utterances.lock().clear();
    }
}

deref_to_fake!(FakeAsr);

impl FakeBehavior for Arc<AsrScript> {
    fn info(&self) -> Value {
        let model = info_entry("fake-tiny", json!({ "languages": ["en"] }));
        let more = json!({
            "models": [model],
            "supports_transcript_streaming": self.streaming,
            "requires_external_vad": true,
        });
        json!({ "asr": [info_entry("fake-asr", more)] })
    }

    fn reply_to(
        &self,
        event: &ReceivedEvent,
        session: &mut FakeSession,
    ) -> Result<FakeReply, String> {
        if let Some(utterance) = session.collect_sound(event)? {
            self.utterances.lock().push(utterance);
            return Ok(FakeReply::Answer(self.next_transcript()));
        }
        match event.kind.as_str() {
            "transcribe" | "audio-start" | "audio-chunk" => Ok(FakeReply::Nothing),
            other => Err(format!("a transcription service doesn't take '{other}'")),
        }
    }
}

impl AsrScript {
    fn next_transcript(&self) -> Vec<Vec<u8>> {
        let text = self.texts.lock().pop_front().unwrap_or_default();
        let whole = encode_event(
            "transcript",
            &json!({ "text": text, "language": "en" }),
            &[],
        );
        if !self.streaming {
            return vec![whole];
        }
        let words = text.split_inclusive(' ');
        let chunks =
            words.map(|word| encode_event("transcript-chunk", &json!({ "text": word }), &[]));
        [encode_event("transcript-start", &json!({}), &[])]
            .into_iter()
            .chain(chunks)
            .chain([whole, encode_event("transcript-stop", &json!({}), &[])])
            .collect()
    }
}
