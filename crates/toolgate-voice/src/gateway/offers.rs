//! What the gateway offers to others over Wyoming.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::info;

use super::GatewayError;
use super::addresses::Addresses;
use crate::VoiceSettings;
use crate::services::{HandleService, TtsService};
use crate::speak::Synthesize;
use crate::turn::BackgroundTranscriber;
use crate::wyoming::{Address, Server, Service};

/// Ports that are taken before anything starts: whoever connects early waits, and what is not to be had is told at once.
pub(super) struct Ports {
    handle: Option<Server>,
    serve_tts: Option<Server>,
}

/// A service and where it is.
pub(super) struct Offer {
    server: Server,
    service: Arc<dyn Service>,
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
    ) -> Vec<Offer> {
        let language = Some(settings.language.clone()).filter(|language| !language.is_empty());
        let languages: Vec<String> = language.into_iter().collect();
        let handle = self.handle.map(|server| {
            let service = HandleService::new(transcriber, languages.clone());
            Offer::new("conversation", server, Arc::new(service))
        });
        let serve_tts = self.serve_tts.map(|server| {
            let service = TtsService::new(engine, &settings.tts_voice, languages);
            Offer::new("speech", server, Arc::new(service))
        });
        handle.into_iter().chain(serve_tts).collect()
    }
}

async fn open(
    key: &'static str,
    address: Option<&Address>,
) -> Result<Option<Server>, GatewayError> {
    let Some(address) = address else {
        return Ok(None);
    };
    let server = Server::bind(address).await;
    let server = server.map_err(|error| GatewayError::Offer { key, error })?;
    Ok(Some(server))
}

impl Offer {
    fn new(what: &str, server: Server, service: Arc<dyn Service>) -> Self {
        let address = server.address();
        info!(%address, "{what} is offered");
        Self { server, service }
    }

    pub(super) async fn serve(self, stop: CancellationToken) {
        self.server.serve(self.service, stop).await;
    }
}
