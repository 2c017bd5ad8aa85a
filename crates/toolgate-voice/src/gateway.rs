//! Puts the gateway's parts together: they start side by side, are kept alive, and end in order.

mod addresses;
mod announcements;
mod capture_loop;
mod engine_monitor;
mod event_hub;
mod lazy_engines;
mod offered_services;
mod run;
mod satellite_feedback;

pub use run::run;

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use toolgate_journal::Journal;
use toolgate_models::{ConnectedModel, ModelSelectionError, ModelSettings, Toolbox};

use crate::capture::AudioInput;
use crate::wyoming::WyomingBindError;
use crate::{EngineError, SpokenApprovals, VoiceObserver, VoiceSettings, VoiceVolume};

/// Everything that [`run()`] needs.
pub struct VoiceGatewayParts {
    pub settings: VoiceSettings,
    /// Where sound comes from. Without an input, the gateway only answers text.
    pub input: Option<AudioInput>,
    pub mode: ListenMode,
    /// Called again whenever the model is lost.
    pub model: ModelFinder,
    pub model_settings: ModelSettings,
    pub toolbox: Toolbox,
    pub tools: watch::Receiver<ToolServerStatus>,
    /// Asks for a spoken yes before a call. Only used with a live input: a file can't answer.
    pub approvals: SpokenApprovals,
    pub journal: Option<Journal>,
    pub mqtt: Option<toolgate_mqtt::MqttClientSettings>,
    pub volume: VoiceVolume,
    pub observer: Arc<dyn VoiceObserver>,
    pub keys: Option<mpsc::Receiver<VoiceKey>>,
}

/// A function that selects a model and connects to it.
pub type ModelFinder =
    Arc<dyn Fn() -> BoxFuture<'static, Result<ConnectedModel, ModelSelectionError>> + Send + Sync>;

/// Whether the servers with the tools are still starting, and which are missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ToolServerStatus {
    #[default]
    Starting,
    /// All are connected or have used up their attempts.
    Settled { missing: Option<String> },
}

impl ToolServerStatus {
    fn missing(&self) -> Option<String> {
        match self {
            Self::Starting => None,
            Self::Settled { missing } => missing.clone(),
        }
    }
}

/// What starts a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenMode {
    /// Any speech, without a wake word.
    Always,
    /// The wake word, or a key.
    Wake,
    /// A key, never the wake word.
    PushToTalk,
}

/// A key that a person pressed at the terminal of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum VoiceKey {
    Talk,
}

/// The result of [`run()`]: how many requests were answered, failed or were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VoiceSummary {
    pub turns: u64,
    pub failed: u64,
    pub dropped: u64,
}

/// Why a gateway could not start, or stopped early.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum VoiceGatewayError {
    #[error("{0}")]
    Settings(String),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("{error}; stop the other program, or choose another address for voice.{key}")]
    Offer {
        key: &'static str,
        error: WyomingBindError,
    },
}
