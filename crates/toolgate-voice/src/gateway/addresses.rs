//! The addresses among the settings.

use super::GatewayError;
use crate::VoiceSettings;
use crate::wyoming::Address;

pub(super) struct Addresses {
    pub(super) asr: Address,
    pub(super) wake: Option<Address>,
    pub(super) tts: Option<Address>,
    pub(super) handle: Option<Address>,
    pub(super) serve_tts: Option<Address>,
}

impl Addresses {
    /// Reads them all, so that a wrong one is told before anything starts.
    pub(super) fn of(settings: &VoiceSettings) -> Result<Self, GatewayError> {
        let tts = Some(settings.tts.as_str()).filter(|tts| tts.contains("://"));
        let asr = address("asr", &settings.asr)?;
        let tts = address("tts", tts.unwrap_or_default())?;
        let serve_tts = address("serveTts", &settings.serve_tts)?;
        if let (Some(tts), Some(serve_tts)) = (&tts, &serve_tts)
            && tts.may_reach(serve_tts)
        {
            let what = "it offers the voice that 'tts' names, which would ask itself; give one of them another address";
            return Err(GatewayError::Settings(format!("voice.serveTts: {what}")));
        }
        Ok(Self {
            asr: asr.ok_or_else(|| {
                let what = "write where the Wyoming service is that makes text of speech";
                GatewayError::Settings(format!("voice.asr: {what}"))
            })?,
            wake: address("wake", &settings.wake)?,
            tts,
            handle: address("handle", &settings.handle)?,
            serve_tts,
        })
    }
}

fn address(key: &str, text: &str) -> Result<Option<Address>, GatewayError> {
    match text.trim() {
        "" => Ok(None),
        text => match text.parse() {
            Ok(address) => Ok(Some(address)),
            Err(error) => Err(GatewayError::Settings(format!("voice.{key}: {error}"))),
        },
    }
}
