//! The speech engine and the output, resolved on first use: a missing program may be installed
//! later, and a satellite that comes back is a new connection.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::audio::AudioFormat;
use crate::capture::SatelliteLink;
use crate::speak::{self, AudioOutput, OpenedPlayback, SoundStream, SpeechSynthesizer};
use crate::{EngineError, VoiceSettings};

pub(super) struct LazySynthesizer {
    name: String,
    voice: String,
    found: OnceLock<Arc<dyn SpeechSynthesizer>>,
}

impl LazySynthesizer {
    pub(super) fn new(settings: &VoiceSettings) -> Self {
        Self {
            name: settings.tts.clone(),
            voice: settings.tts_voice.clone(),
            found: OnceLock::new(),
        }
    }

    pub(super) fn find(&self) -> Result<&Arc<dyn SpeechSynthesizer>, EngineError> {
        if let Some(engine) = self.found.get() {
            return Ok(engine);
        }
        let engine = speak::create_synthesizer(&self.name, &self.voice)?;
        Ok(self.found.get_or_init(|| engine))
    }
}

impl SpeechSynthesizer for LazySynthesizer {
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        Box::pin(async move { self.find()?.synthesize(text).await })
    }
}

pub(super) struct LazyOutput {
    name: String,
    found: Mutex<Option<Arc<dyn AudioOutput>>>,
}

impl LazyOutput {
    pub(super) fn new(settings: &VoiceSettings) -> Self {
        Self {
            name: settings.output.clone(),
            found: Mutex::default(),
        }
    }

    pub(super) fn connect(&self, link: SatelliteLink) {
        // Without a configured output, the connected satellite plays. A new connection replaces the
        // one before.
        if self.name.is_empty() {
            *self.found.lock() = Some(Arc::new(link));
        }
    }

    pub(super) fn find(&self) -> Result<Arc<dyn AudioOutput>, EngineError> {
        let mut found = self.found.lock();
        if let Some(output) = &*found {
            return Ok(Arc::clone(output));
        }
        let output = speak::create_output(&self.name)?;
        *found = Some(Arc::clone(&output));
        Ok(output)
    }
}

impl AudioOutput for LazyOutput {
    fn begin(&self, format: AudioFormat) -> BoxFuture<'_, OpenedPlayback> {
        let output = self.find();
        Box::pin(async move { output?.begin(format).await })
    }
}
