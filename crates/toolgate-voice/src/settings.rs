//! The `voice` section of the configuration.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use toolgate_core::text::{DURATION_PATTERN, deserialize_duration};

/// The `voice` section of the configuration.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "The voice gateway")]
#[non_exhaustive]
pub struct VoiceSettings {
    /// Where sound comes from: `tcp://host:port` or `unix:///path` of a Wyoming microphone or
    /// satellite, the name of a program (`pw-record`, `parecord`, `arecord`), or a whole command
    /// that writes 16 kHz mono PCM; empty: the first installed program.
    pub input: String,
    /// Where speech is played: a Wyoming address, the name of a program (`pw-play`, `paplay`,
    /// `aplay`), a whole command that reads a WAV stream, or a file that ends in `.wav`; empty: the
    /// satellite, otherwise the first installed program; `none`: nowhere.
    pub output: String,
    /// The Wyoming speech-to-text service.
    pub asr: String,
    /// The language to transcribe, such as `en`; empty: the default of the service.
    pub language: String,
    /// The Wyoming service that detects the wake word; empty: no wake word is needed.
    pub wake: String,
    /// The wake words to listen for, such as `hey_jarvis`; empty: all that the service knows.
    pub wake_words: Vec<String>,
    /// What turns text into speech: a Wyoming address, the name of a program (`espeak-ng`, `piper`,
    /// `flite`, `say`), or a whole command that writes WAV and gets the text in place of a word
    /// `{text}`, otherwise on stdin; empty: the first installed program; `none`: silence.
    pub tts: String,
    /// The voice to speak with; empty: the default of the engine.
    pub tts_voice: String,
    /// How much silence ends a request.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub silence: Duration,
    /// How much sound to keep from before speech was detected.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub pre_roll: Duration,
    /// How long speech must last to start a request.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub min_speech: Duration,
    /// The shortest request: it does not end earlier.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub min_command: Duration,
    /// The longest request; the rest is cut off.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub max_command: Duration,
    /// How long to wait for speech after the wake word.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub wake_patience: Duration,
    /// How sure the detector must be that a sound is speech, from 0 to 1.
    #[serde(deserialize_with = "deserialize_fraction")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sensitivity: f32,
    /// How many requests may wait while one is answered; any more are dropped and reported.
    #[serde(deserialize_with = "deserialize_queue")]
    #[schemars(range(min = 1, max = 64))]
    pub queue: usize,
    /// How long transcription may take.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub asr_timeout: Duration,
    /// How long a tool may run before the gateway says that it is still working.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub filler_after: Duration,
    /// A conversation that nobody continues for this long is forgotten.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub forget_after: Duration,
    /// Whether to play tones for the wake word, slow work and failures.
    pub tones: bool,
    /// Where to offer Home Assistant a conversation agent, such
    /// as `tcp://127.0.0.1:10800`; empty: nowhere.
    pub handle: String,
    /// Where to offer the speech engine to others as a Wyoming
    /// service, such as `tcp://127.0.0.1:10200`; empty: nowhere.
    pub serve_tts: String,
    /// What to say once everything is ready; empty: nothing.
    pub welcome: String,
}

impl VoiceSettings {
    /// True if the gateway offers a Wyoming service to others.
    pub fn serves(&self) -> bool {
        !self.handle.is_empty() || !self.serve_tts.is_empty()
    }

    /// True if the gateway does nothing but serve others. It must not open a microphone then.
    pub fn only_serves(&self) -> bool {
        self.serves() && self.input.is_empty() && self.wake.is_empty()
    }
}

impl Default for VoiceSettings {
    fn default() -> Self {
        Self {
            input: String::new(),
            output: String::new(),
            asr: "tcp://127.0.0.1:10300".to_owned(),
            language: String::new(),
            wake: String::new(),
            wake_words: Vec::new(),
            tts: String::new(),
            tts_voice: String::new(),
            silence: Duration::from_millis(700),
            pre_roll: Duration::from_millis(300),
            min_speech: Duration::from_millis(300),
            min_command: Duration::from_secs(1),
            max_command: Duration::from_secs(15),
            wake_patience: Duration::from_secs(5),
            sensitivity: 0.5,
            queue: 4,
            asr_timeout: Duration::from_secs(30),
            filler_after: Duration::from_millis(700),
            forget_after: Duration::from_secs(120),
            tones: true,
            handle: String::new(),
            serve_tts: String::new(),
            welcome: String::new(),
        }
    }
}

fn deserialize_fraction<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    match f32::deserialize(deserializer)? {
        fraction if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err(de::Error::custom("must be from 0 to 1")),
    }
}

fn deserialize_queue<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    match usize::deserialize(deserializer)? {
        length @ 1..=64 => Ok(length),
        _ => Err(de::Error::custom("must be from 1 to 64")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_strictly() {
        let read = |json: &str| serde_json::from_str::<VoiceSettings>(json);
        assert_eq!(read("{}").unwrap(), VoiceSettings::default());
        let settings = read(r#"{ "silence": "1.25s", "tts": "espeak-ng" }"#).unwrap();
        let [silence, pre_roll] = [1250, 300].map(Duration::from_millis);
        assert_eq!((settings.silence, settings.pre_roll), (silence, pre_roll));
        for (json, problem) in [
            (r#"{ "preroll": "1s" }"#, "unknown field `preroll`"),
            (r#"{ "silence": 700 }"#, "write \"700s\""),
            (r#"{ "silence": "soon" }"#, "'soon'"),
            (r#"{ "sensitivity": 2 }"#, "must be from 0 to 1"),
            (r#"{ "queue": 0 }"#, "must be from 1 to 64"),
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(problem), "{json}: {error}");
        }
    }
}
