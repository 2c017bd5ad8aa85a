//! Claude, through Anthropic's Messages API.

mod block;
mod request;
mod stream;
mod tools;
mod transcript;
mod wire;

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;

use self::stream::AnthropicReader;
use crate::catalog::ToolDialect;
use crate::compat::SentOptions;
use crate::http::secret_header;
use crate::provider_client::ProviderClient;
use crate::wire_format::{FormatCore, ToolEncoder, WireFormat};
use crate::{ModelError, ModelRequest, ModelSettings, Provider};

const PROVIDER: Provider = Provider::Anthropic;
pub(crate) const URL: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";
// The smallest context window of Anthropic's models, in tokens.
const WINDOW: usize = 200_000;

/// A client for Anthropic, or for another server that speaks its Messages API.
///
/// The key and the address come from the settings; the environment is not read.
pub type AnthropicClient = ProviderClient<AnthropicFormat>;

pub struct AnthropicFormat(FormatCore<SentOptions>);

impl AnthropicClient {
    pub fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        let sent = SentOptions {
            seed: false,
            think: settings.think == Some(true),
            ..SentOptions::from_settings(settings)
        };
        let core = FormatCore::new(PROVIDER, settings, WINDOW, sent)?;
        Ok(Self::with_format(AnthropicFormat(core), settings))
    }
}

impl WireFormat for AnthropicFormat {
    const PROVIDER: Provider = PROVIDER;
    const DIALECT: &'static ToolDialect = &tools::DIALECT;
    const ENCODE_TOOL: ToolEncoder = tools::encode_tool;

    type Compat = SentOptions;
    type Reader<'a> = AnthropicReader<'a>;

    fn core(&self) -> &FormatCore<SentOptions> {
        &self.0
    }

    fn path(&self) -> &str {
        "/v1/messages"
    }

    fn body(&self, request: &ModelRequest<'_>, sent: SentOptions) -> Result<Vec<u8>, String> {
        request::body(&self.0.options, sent, request)
    }

    fn reader<'a>(&self, request: &ModelRequest<'a>) -> AnthropicReader<'a> {
        AnthropicReader::new(request.tools.catalog())
    }

    fn status(error: &Value) -> u16 {
        match error["error"]["type"].as_str().unwrap_or_default() {
            "invalid_request_error" => 400,
            "authentication_error" => 401,
            "billing_error" => 402,
            "permission_error" => 403,
            "not_found_error" => 404,
            "request_too_large" => 413,
            "rate_limit_error" => 429,
            "timeout_error" => 504,
            "overloaded_error" => 529,
            _ => 500,
        }
    }
}

pub(crate) fn headers(key: &str) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
    if !key.trim().is_empty() {
        headers.insert("x-api-key", secret_header(PROVIDER, key)?);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests;
