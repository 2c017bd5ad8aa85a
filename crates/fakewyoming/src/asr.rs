//! Makes text of speech, by a script.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::fake::{Part, Reply, Session, is_a_fake, lock};
use crate::frame::{artifact, event};
use crate::{Fake, Got};

/// A transcription service: the text of every utterance is the next of its script, and nothing when that is at its end.
pub struct FakeAsr {
    fake: Fake,
    script: Arc<Script>,
}

#[derive(Default)]
struct Script {
    texts: Mutex<VecDeque<String>>,
    utterances: Mutex<Vec<Vec<u8>>>,
    streaming: bool,
}

impl FakeAsr {
    /// One that sends each transcript as a whole.
    ///
    /// # Panics
    /// If there is no free port on the loopback.
    pub async fn start<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::with(texts, false).await
    }

    /// One that sends each transcript word by word, and then as a whole.
    ///
    /// # Panics
    /// If there is no free port on the loopback.
    pub async fn streaming<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::with(texts, true).await
    }

    async fn with<'a>(texts: impl IntoIterator<Item = &'a str>, streaming: bool) -> Self {
        let texts = texts.into_iter().map(str::to_owned).collect();
        let script = Arc::new(Script {
            texts: Mutex::new(texts),
            utterances: Mutex::default(),
            streaming,
        });
        let fake = Fake::start(Arc::clone(&script)).await;
        Self { fake, script }
    }

    /// One more text at the end of the script.
    pub fn then(&self, text: &str) {
        lock(&self.script.texts).push_back(text.to_owned());
    }

    /// The sound of every utterance so far, as it came.
    pub fn utterances(&self) -> Vec<Vec<u8>> {
        lock(&self.script.utterances).clone()
    }

    /// Forgets events and utterances so far, for a double that is used very often.
    pub fn forget(&self) {
        self.fake.forget();
        lock(&self.script.utterances).clear();
    }
}

is_a_fake!(FakeAsr);

impl Part for Arc<Script> {
    fn info(&self) -> Value {
        let model = artifact("fake-tiny", json!({ "languages": ["en"] }));
        let more = json!({
            "models": [model],
            "supports_transcript_streaming": self.streaming,
            "requires_external_vad": true,
        });
        json!({ "asr": [artifact("fake-asr", more)] })
    }

    fn on(&self, event: &Got, session: &mut Session) -> Result<Reply, String> {
        if let Some(utterance) = session.hear(event)? {
            lock(&self.utterances).push(utterance);
            return Ok(Reply::Answer(self.next()));
        }
        match event.kind.as_str() {
            "transcribe" | "audio-start" | "audio-chunk" => Ok(Reply::Nothing),
            other => Err(format!("'{other}' is nothing for a transcription service")),
        }
    }
}

impl Script {
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
