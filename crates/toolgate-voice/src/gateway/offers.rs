//! What the gateway offers to others over Wyoming.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::info;

use super::GatewayError;
use crate::services::{HandleService, TtsService};
use crate::turn::BackgroundTranscriber;
use crate::wyoming::{Address, Server, Service};
use crate::{Synthesize, VoiceSettings};

/// A service whose port is taken.
pub(super) struct Offer {
    server: Server,
    service: Arc<dyn Service>,
}

impl Offer {
    async fn at(
        address: &Address,
        key: &'static str,
        service: Arc<dyn Service>,
    ) -> Result<Self, GatewayError> {
        let server = Server::bind(address).await;
        let server = server.map_err(|error| GatewayError::Offer { key, error })?;
        let address = server.address();
        info!(service = key, %address, "offered");
        Ok(Self { server, service })
    }

    pub(super) async fn serve(self, stop: CancellationToken) {
        self.server.serve(self.service, stop).await;
    }
}

/// Takes the ports of all that is to be offered.
pub(super) async fn open(
    [handle, tts]: [Option<&Address>; 2],
    transcriber: Arc<BackgroundTranscriber>,
    engine: Arc<dyn Synthesize>,
    settings: &VoiceSettings,
) -> Result<Vec<Offer>, GatewayError> {
    let languages: Vec<String> = Some(settings.language.clone())
        .filter(|language| !language.is_empty())
        .into_iter()
        .collect();
    let mut offers = Vec::new();
    if let Some(address) = handle {
        let service = HandleService::new(transcriber, languages.clone());
        offers.push(Offer::at(address, "handle", Arc::new(service)).await?);
    }
    if let Some(address) = tts {
        let service = TtsService::new(engine, &settings.tts_voice, languages);
        offers.push(Offer::at(address, "serveTts", Arc::new(service)).await?);
    }
    Ok(offers)
}
