//! Parses the addresses in the settings.

use std::fmt;

use super::VoiceGatewayError;
use crate::VoiceSettings;
use crate::wyoming::WyomingAddress;

pub(super) struct EngineAddresses {
    pub(super) asr: WyomingAddress,
    pub(super) wake: Option<WyomingAddress>,
    pub(super) tts: Option<WyomingAddress>,
    pub(super) handle: Option<WyomingAddress>,
    pub(super) serve_tts: Option<WyomingAddress>,
}

impl EngineAddresses {
    // All of them at once, so that a wrong one is reported before anything starts.
    pub(super) fn from_settings(settings: &VoiceSettings) -> Result<Self, VoiceGatewayError> {
        let asr = parse_address("asr", &settings.asr)?;
        let is_address = settings.tts.contains("://");
        let tts = parse_address("tts", if is_address { &settings.tts } else { "" })?;
        let serve_tts = parse_address("serveTts", &settings.serve_tts)?;
        // The gateway would ask itself for speech, over and over.
        if let (Some(tts), Some(serve_tts)) = (&tts, &serve_tts)
            && tts.may_reach(serve_tts)
        {
            let what = "it has the same address as 'tts', so the gateway would ask itself; change one of them";
            return Err(invalid("serveTts", what));
        }
        let missing = || {
            invalid(
                "asr",
                "set the address of the Wyoming speech-to-text service",
            )
        };
        Ok(Self {
            asr: asr.ok_or_else(missing)?,
            wake: parse_address("wake", &settings.wake)?,
            tts,
            handle: parse_address("handle", &settings.handle)?,
            serve_tts,
        })
    }
}

fn parse_address(key: &str, text: &str) -> Result<Option<WyomingAddress>, VoiceGatewayError> {
    match text.trim() {
        "" => Ok(None),
        text => {
            let address: Result<WyomingAddress, _> = text.parse();
            address.map(Some).map_err(|error| invalid(key, error))
        }
    }
}

fn invalid(key: &str, what: impl fmt::Display) -> VoiceGatewayError {
    VoiceGatewayError::Settings(format!("voice.{key}: {what}"))
}
