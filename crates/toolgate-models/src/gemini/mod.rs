//! Google's Gemini, through `streamGenerateContent`.

mod request;
mod stream;
mod tools;
mod transcript;

use reqwest::header::HeaderMap;
use serde_json::Value;

use self::stream::GeminiReader;
use crate::catalog::ToolDialect;
use crate::compat::SentOptions;
use crate::http::{ErrorResponse, secret_header};
use crate::provider_client::ProviderClient;
use crate::wire_format::{FormatCore, ToolEncoder, WireFormat};
use crate::{ModelError, ModelRequest, ModelSettings, Provider};

const PROVIDER: Provider = Provider::Gemini;
pub(crate) const URL: &str = "https://generativelanguage.googleapis.com";
const VERSION: &str = "/v1beta";
// The API lists at most a thousand models at once.
pub(crate) const MODELS: &str = "/v1beta/models?pageSize=1000";
// The smallest context window of Google's current models, in tokens.
const WINDOW: usize = 1_048_576;

/// A client for Google's Gemini API, or for another server that speaks it.
///
/// The key and the address come from the settings; the environment is not read.
pub type GeminiClient = ProviderClient<GeminiFormat>;

pub struct GeminiFormat {
    core: FormatCore<SentOptions>,
    path: String,
}

impl GeminiClient {
    pub fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        let sent = SentOptions::from_settings(settings);
        let mut core = FormatCore::new(PROVIDER, settings, WINDOW, sent)?;
        // Names in the list of models have this prefix, so people copy it.
        if let Some(name) = core.options.model.strip_prefix("models/") {
            core.options.model = name.to_owned();
        }
        let in_path = core.options.model.replace('?', "%3F").replace('#', "%23");
        let path = format!("{VERSION}/models/{in_path}:streamGenerateContent?alt=sse");
        Ok(Self::with_format(GeminiFormat { core, path }, settings))
    }
}

impl WireFormat for GeminiFormat {
    const PROVIDER: Provider = PROVIDER;
    const DIALECT: &'static ToolDialect = &tools::DIALECT;
    const ENCODE_TOOL: ToolEncoder = tools::encode_tool;

    type Compat = SentOptions;
    type Reader<'a> = GeminiReader<'a>;

    fn core(&self) -> &FormatCore<SentOptions> {
        &self.core
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn body(&self, request: &ModelRequest<'_>, sent: SentOptions) -> Result<Vec<u8>, String> {
        request::body(&self.core.options, sent, request)
    }

    fn reader<'a>(&self, request: &ModelRequest<'a>) -> GeminiReader<'a> {
        GeminiReader::new(request.tools.catalog())
    }

    fn status(error: &Value) -> u16 {
        let error = error.get("error").unwrap_or(error);
        match error["code"].as_u64() {
            Some(status @ 400..600) => status as u16,
            _ => 500,
        }
    }

    fn to_model_error(&self, failure: ErrorResponse) -> ModelError {
        let said = failure.message.to_lowercase();
        match failure.status {
            // Gemini reports a wrong key as a bad request.
            400 if said.contains("api key") => failure.into_key_error(),
            400 if said.contains("exceeds the maximum number of tokens") => ModelError::TooLong {
                model: self.core.options.model.clone(),
                reason: format!(
                    "{}; start a new conversation, or offer fewer tools",
                    failure.message
                ),
            },
            // Gemini calls every limit a quota. One that will pass soon comes with a delay.
            429 if failure.retry_after.is_some() => failure.into_limited_error(),
            _ => failure.into_model_error(&self.core.options.model),
        }
    }
}

pub(crate) fn headers(key: &str) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    if !key.trim().is_empty() {
        headers.insert("x-goog-api-key", secret_header(PROVIDER, key)?);
    }
    Ok(headers)
}

pub(crate) fn parse_models(answer: &Value) -> (Vec<String>, bool) {
    let models = answer["models"].as_array().into_iter().flatten();
    let names = models.filter_map(|model| model["name"].as_str());
    let names = names.map(|name| name.strip_prefix("models/").unwrap_or(name).to_owned());
    (names.collect(), answer.get("nextPageToken").is_some())
}

#[cfg(test)]
mod tests;
