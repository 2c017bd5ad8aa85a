//! All rooms together: started side by side, kept alive, and ended in order.

mod addresses;
mod find;
mod hub;
mod listening;
mod offers;
mod outlet;
mod run;
mod satellite;
mod words;

pub use run::run;

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use toolgate_journal::Journal;
use toolgate_models::{ChooseError, Chosen, ModelSettings, Toolbox};

use crate::hear::Input;
use crate::wyoming::BindError;
use crate::{EngineError, Loudness, SpokenApprovals, VoiceSettings, Watcher};

/// What a gateway is made of.
pub struct Parts {
    /// How it hears and speaks.
    pub settings: VoiceSettings,
    /// Where sound comes from; without any, it answers text alone.
    pub input: Option<Input>,
    /// When it listens.
    pub mode: Mode,
    /// Looks for the model, as often as it is asked.
    pub model: FindModel,
    /// How a model is used while it is not found.
    pub model_settings: ModelSettings,
    /// The tools, those that are there and those that will be.
    pub toolbox: Toolbox,
    /// Which servers of tools are there, now and later.
    pub tools: watch::Receiver<Reach>,
    /// Asks aloud before a call, where somebody is heard as they speak: a file can't be asked.
    pub approvals: SpokenApprovals,
    /// Where turns are kept.
    pub journal: Option<Journal>,
    /// The house's broker.
    pub mqtt: Option<toolgate_mqtt::Settings>,
    /// How loud it speaks.
    pub loudness: Loudness,
    /// Sees everything.
    pub watcher: Arc<dyn Watcher>,
    /// Keys that are pressed.
    pub keys: Option<mpsc::Receiver<Key>>,
}

/// Looks for a model.
pub type FindModel = Arc<dyn Fn() -> BoxFuture<'static, Result<Chosen, ChooseError>> + Send + Sync>;

/// What is known of the servers of tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Reach {
    /// Some are still on their way.
    #[default]
    Starting,
    /// All are there, or have used their attempts.
    Settled {
        /// What can not be reached, in words, such as `the smart home`.
        missing: Option<String>,
    },
}

impl Reach {
    fn missing(&self) -> Option<String> {
        match self {
            Self::Starting => None,
            Self::Settled { missing } => missing.clone(),
        }
    }
}

/// When the gateway listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// To everything.
    Always,
    /// After its name.
    Wake,
    /// After a key.
    PushToTalk,
}

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Key {
    /// Listen now; whatever is being said is cut short.
    Talk,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Requests that were answered, well or not.
    pub turns: u64,
    /// Those that failed.
    pub failed: u64,
    /// What was heard and is no request.
    pub dropped: u64,
}

/// Why there is no gateway.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// A setting makes no sense.
    #[error("{0}")]
    Settings(String),
    /// Its input, which does not come again, can not be read.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A service can not be offered.
    #[error("{error}; end what is there, or choose another address for voice.{key}")]
    Offer {
        /// Which setting says where.
        key: &'static str,
        /// Why not.
        error: BindError,
    },
}
