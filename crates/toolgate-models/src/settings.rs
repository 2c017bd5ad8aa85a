//! The configuration's `model`.

use std::time::Duration;

use crate::Provider;

/// Which model, and how it is used.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelSettings {
    /// Who answers; `None`: whoever is there.
    pub provider: Option<Provider>,
    /// Which model; empty: the provider's usual one.
    pub name: String,
    /// Where it is; empty: the variable of the provider, else its usual address.
    pub url: String,
    /// The key; empty: the variable of the provider. Never shown.
    pub key: String,
    /// What the model should know before anything else.
    pub system: String,
    /// How many tokens the model may hold; `None`: what the provider says, else 8192.
    pub context_tokens: Option<usize>,
    /// The most tokens of one answer.
    pub max_tokens: usize,
    /// Whether the model should think before it answers; `None`: as it likes.
    pub think: Option<bool>,
    /// Whether its thinking is shown and kept in history.
    pub keep_thinking: bool,
    /// How long Ollama keeps the model loaded, in seconds; -1: for ever.
    pub keep_alive: i64,
    /// Sampling temperature; `None`: not sent, as new models refuse it.
    pub temperature: Option<f64>,
    /// The same seed, the same answer, where a provider can do that.
    pub seed: Option<i64>,
    /// Rounds of calls in one turn; then the model has to answer in words.
    pub max_tool_rounds: usize,
    /// The same call with the same arguments, how often in one turn.
    pub max_same_calls: usize,
    /// Offer only the best tools for a request, at most this many; 0: all.
    pub max_tools: usize,
    /// Offer tools of at most this many tokens; 0: as many as fit half the window.
    pub max_tool_tokens: usize,
    /// Tools that are always offered.
    pub pinned_tools: Vec<String>,
    /// Bytes of a tool's result that a model is given; the rest is cut, visibly.
    pub max_result: usize,
    /// Whether a call that a model wrote as text is understood.
    pub rescue: bool,
    /// Whether sentences that `intents` understands are answered without the model.
    pub intents_first: bool,
    /// Attempts of one question to the model.
    pub attempts: u32,
    /// How long to wait for the first byte of an answer; a model may have to be loaded first.
    pub first_byte: Duration,
    /// How long one turn may take, tools included.
    pub timeout: Duration,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            provider: None,
            name: String::new(),
            url: String::new(),
            key: String::new(),
            system: String::new(),
            context_tokens: None,
            max_tokens: 4096,
            think: None,
            keep_thinking: false,
            keep_alive: -1,
            temperature: None,
            seed: None,
            max_tool_rounds: 10,
            max_same_calls: 3,
            max_tools: 0,
            max_tool_tokens: 0,
            pinned_tools: Vec::new(),
            max_result: 64 * 1024,
            rescue: true,
            intents_first: false,
            attempts: 3,
            first_byte: Duration::from_secs(120),
            timeout: Duration::from_secs(300),
        }
    }
}
