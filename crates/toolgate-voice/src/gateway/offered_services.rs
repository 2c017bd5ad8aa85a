//! The Wyoming services that the gateway offers to others.

use std::sync::Arc;

use tracing::info;

use super::VoiceGatewayError;
use super::addresses::EngineAddresses;
use crate::VoiceSettings;
use crate::services::{HandleService, TtsService};
use crate::speak::SpeechSynthesizer;
use crate::turn::BackgroundTranscriber;
use crate::wyoming::{WyomingAddress, WyomingListener, WyomingService};

// Bound before anything starts: early clients can wait, and an address in use is reported at once.
pub(super) struct OfferedPorts {
    handle: Option<WyomingListener>,
    serve_tts: Option<WyomingListener>,
}

impl OfferedPorts {
    pub(super) async fn open(addresses: &EngineAddresses) -> Result<Self, VoiceGatewayError> {
        Ok(Self {
            handle: bind_optional("handle", addresses.handle.as_ref()).await?,
            serve_tts: bind_optional("serveTts", addresses.serve_tts.as_ref()).await?,
        })
    }

    pub(super) fn into_services(
        self,
        transcriber: Arc<BackgroundTranscriber>,
        engine: Arc<dyn SpeechSynthesizer>,
        settings: &VoiceSettings,
    ) -> Vec<(WyomingListener, Arc<dyn WyomingService>)> {
        let language = settings.language.clone();
        let languages: Vec<String> = (!language.is_empty())
            .then_some(language)
            .into_iter()
            .collect();
        let mut offers = Vec::<(WyomingListener, Arc<dyn WyomingService>)>::new();
        if let Some(listener) = self.handle {
            info!(address = %listener.address(), "conversation service started");
            let service = HandleService::new(transcriber, languages.clone());
            offers.push((listener, Arc::new(service)));
        }
        if let Some(listener) = self.serve_tts {
            info!(address = %listener.address(), "speech service started");
            let service = TtsService::new(engine, &settings.tts_voice, languages);
            offers.push((listener, Arc::new(service)));
        }
        offers
    }
}

async fn bind_optional(
    key: &'static str,
    address: Option<&WyomingAddress>,
) -> Result<Option<WyomingListener>, VoiceGatewayError> {
    let Some(address) = address else {
        return Ok(None);
    };
    let listener = WyomingListener::bind(address).await.map(Some);
    listener.map_err(|error| VoiceGatewayError::Offer { key, error })
}
