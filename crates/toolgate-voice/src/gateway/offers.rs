//! What the gateway offers to others over Wyoming.

use std::sync::Arc;

use tracing::info;

use super::GatewayError;
use super::addresses::Addresses;
use crate::VoiceSettings;
use crate::services::{HandleService, TtsService};
use crate::speak::Synthesize;
use crate::turn::BackgroundTranscriber;
use crate::wyoming::{Address, Listener, Service};

/// Ports that are taken before anything starts: whoever connects early waits, and what is not to be had is told at once.
pub(super) struct Ports {
    handle: Option<Listener>,
    serve_tts: Option<Listener>,
}

impl Ports {
    pub(super) async fn open(addresses: &Addresses) -> Result<Self, GatewayError> {
        Ok(Self {
            handle: open("handle", addresses.handle.as_ref()).await?,
            serve_tts: open("serveTts", addresses.serve_tts.as_ref()).await?,
        })
    }

    pub(super) fn offers(
        self,
        transcriber: Arc<BackgroundTranscriber>,
        engine: Arc<dyn Synthesize>,
        settings: &VoiceSettings,
    ) -> Vec<(Listener, Arc<dyn Service>)> {
        let language = Some(settings.language.clone()).filter(|language| !language.is_empty());
        let languages: Vec<String> = language.into_iter().collect();
        let mut offers = Vec::<(Listener, Arc<dyn Service>)>::new();
        if let Some(listener) = self.handle {
            info!(address = %listener.address(), "conversation is offered");
            let service = HandleService::new(transcriber, languages.clone());
            offers.push((listener, Arc::new(service)));
        }
        if let Some(listener) = self.serve_tts {
            info!(address = %listener.address(), "speech is offered");
            let service = TtsService::new(engine, &settings.tts_voice, languages);
            offers.push((listener, Arc::new(service)));
        }
        offers
    }
}

async fn open(
    key: &'static str,
    address: Option<&Address>,
) -> Result<Option<Listener>, GatewayError> {
    let Some(address) = address else {
        return Ok(None);
    };
    let listener = Listener::bind(address).await;
    Ok(Some(
        listener.map_err(|error| GatewayError::Offer { key, error })?,
    ))
}
