//! The voice and where it is played, looked for when they are needed: what is missing today may be installed tomorrow, and a
//! satellite that comes back is another connection.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use parking_lot::Mutex;

use crate::audio::Format;
use crate::hear::SatelliteLink;
use crate::speak;
use crate::speak::{Output, Playing, SoundStream, Synthesize};
use crate::{EngineError, VoiceSettings};

pub(super) struct Voice {
    name: String,
    voice: String,
    found: OnceLock<Arc<dyn Synthesize>>,
}

impl Voice {
    pub(super) fn new(settings: &VoiceSettings) -> Self {
        Self {
            name: settings.tts.clone(),
            voice: settings.tts_voice.clone(),
            found: OnceLock::new(),
        }
    }

    pub(super) fn find(&self) -> Result<&Arc<dyn Synthesize>, EngineError> {
        match self.found.get() {
            Some(engine) => Ok(engine),
            None => {
                let engine = speak::engine(&self.name, &self.voice)?;
                Ok(self.found.get_or_init(|| engine))
            }
        }
    }
}

impl Synthesize for Voice {
    fn synthesize<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Result<SoundStream, EngineError>> {
        Box::pin(async move { self.find()?.synthesize(text).await })
    }
}

pub(super) struct Outlet {
    name: String,
    found: Mutex<Option<Arc<dyn Output>>>,
}

impl Outlet {
    pub(super) fn new(settings: &VoiceSettings) -> Self {
        Self {
            name: settings.output.clone(),
            found: Mutex::default(),
        }
    }

    /// Where nothing else is named, what is said from now on is played by this satellite.
    pub(super) fn connect(&self, link: SatelliteLink) {
        if self.name.is_empty() {
            *self.found.lock() = Some(Arc::new(link));
        }
    }

    pub(super) fn find(&self) -> Result<Arc<dyn Output>, EngineError> {
        let mut found = self.found.lock();
        if let Some(output) = &*found {
            return Ok(Arc::clone(output));
        }
        let output = speak::output(&self.name, None)?;
        *found = Some(Arc::clone(&output));
        Ok(output)
    }
}

impl Output for Outlet {
    fn begin(&self, format: Format) -> BoxFuture<'_, Result<Box<dyn Playing>, EngineError>> {
        let output = self.find();
        Box::pin(async move { output?.begin(format).await })
    }
}
