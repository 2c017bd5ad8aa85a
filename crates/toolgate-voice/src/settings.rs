//! The configuration's `voice`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use toolgate_core::{DURATION_PATTERN, deserialize_duration};

/// How the gateway hears and speaks. The defaults are the documented ones of the configuration's `voice`.
///
/// ```
/// use std::time::Duration;
/// use toolgate_voice::VoiceSettings;
///
/// let settings: VoiceSettings = serde_json::from_str(r#"{ "silence": "1.25s", "tts": "espeak-ng" }"#).unwrap();
/// assert_eq!((settings.silence, settings.pre_roll), (Duration::from_millis(1250), Duration::from_millis(300)));
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(description = "The voice gateway")]
#[non_exhaustive]
pub struct VoiceSettings {
    /// Where sound comes from: `tcp://host:port` or `unix:///path` of a Wyoming microphone or satellite, the name of a program
    /// (`pw-record`, `parecord`, `arecord`), or a whole command that writes 16 kHz mono PCM; empty: the first program there is.
    pub input: String,
    /// Where speech is played: a Wyoming address, the name of a program (`pw-play`, `paplay`, `aplay`), a whole command that reads
    /// a WAV stream, or a file that ends in `.wav`; empty: back to the satellite, else the first program there is; `none`: nowhere.
    pub output: String,
    /// The Wyoming service that makes text of speech.
    pub asr: String,
    /// Its language, such as `en`; empty: as it is set up.
    pub language: String,
    /// The Wyoming service that hears the wake word; empty: none is needed.
    pub wake: String,
    /// The wake words that count, such as `hey_jarvis`; empty: all it knows.
    pub wake_words: Vec<String>,
    /// What makes speech of text: a Wyoming address, the name of a program (`espeak-ng`, `piper`, `flite`, `say`), or a whole
    /// command that writes WAV and is given the text in place of a word `{text}`, else on stdin; empty: the first program there is; `none`: silence.
    pub tts: String,
    /// Its voice; empty: its usual one.
    pub tts_voice: String,
    /// How long it must be quiet for speech to be over.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub silence: Duration,
    /// How much is kept from before speech was noticed.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub pre_roll: Duration,
    /// How long somebody must speak for speech to have begun.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub min_speech: Duration,
    /// The shortest request: speech is not over before.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub min_command: Duration,
    /// The longest request; it is cut there.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub max_command: Duration,
    /// How long a wake word is good for if nobody speaks after it.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub wake_patience: Duration,
    /// How sure the detector must be that this is speech, from 0 to 1.
    #[serde(deserialize_with = "share")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sensitivity: f32,
    /// How many requests wait while one is answered; what comes then is dropped, and told.
    #[serde(deserialize_with = "queue")]
    #[schemars(range(min = 1, max = 64))]
    pub queue: usize,
    /// How long transcription may take.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub asr_timeout: Duration,
    /// How long a tool may work before the gateway says that it is at it.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub filler_after: Duration,
    /// A conversation nobody continues for this long is over.
    #[serde(deserialize_with = "deserialize_duration")]
    #[schemars(with = "String", regex(pattern = DURATION_PATTERN))]
    pub forget_after: Duration,
    /// Whether tones are played at the wake word, while it works, and when something fails.
    pub tones: bool,
    /// Where Home Assistant finds the gateway as a conversation agent, such as `tcp://127.0.0.1:10800`; empty: nowhere.
    pub handle: String,
    /// Where others find the program's speech engine as a Wyoming service, such as `tcp://127.0.0.1:10200`; empty: nowhere.
    pub serve_tts: String,
    /// What is said once everything is ready; empty: nothing.
    pub welcome: String,
}

impl VoiceSettings {
    /// Whether the gateway serves others.
    pub fn serves(&self) -> bool {
        !self.handle.is_empty() || !self.serve_tts.is_empty()
    }

    /// Whether that is all it does: whoever gives another machine an agent has not asked for a
    /// microphone that is always open.
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

fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    match f32::deserialize(deserializer)? {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(de::Error::custom("must be from 0 to 1")),
    }
}

fn queue<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
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
