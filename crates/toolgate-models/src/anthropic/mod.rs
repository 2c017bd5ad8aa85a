//! Claude, by the Messages API.

mod block;
mod request;
mod stream;
mod tools;
mod transcript;
mod wire;

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;

use self::request::Options;
use self::stream::Stream;
use crate::catalog::Dialect;
use crate::http::{Http, secret};
use crate::learned::{Learned, Sent};
use crate::provider_client::ProviderClient;
use crate::wire_format::{Endpoint, ToolForm, WireFormat};
use crate::{ModelError, ModelSettings, Provider, Request};

const PROVIDER: Provider = Provider::Anthropic;
pub(crate) const URL: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";
/// What every model of this provider can hold at least.
const WINDOW: usize = 200_000;

/// A client of Anthropic, or of another server that speaks its Messages API.
///
/// The key and the address are those of the settings; the environment is not looked at.
///
/// ```
/// use toolgate_models::{AnthropicClient, ModelClient, ModelSettings};
///
/// let mut settings = ModelSettings::default();
/// settings.key = "sk-ant-…".to_owned();
/// # settings.key = "sk-ant-0".to_owned();
/// let client = AnthropicClient::new(&settings)?;
/// assert_eq!((client.model(), client.window()), ("claude-sonnet-5", 200_000));
/// # Ok::<_, toolgate_models::ModelError>(())
/// ```
pub type AnthropicClient = ProviderClient<AnthropicFormat>;

/// The Messages API.
pub struct AnthropicFormat {
    endpoint: Endpoint,
    options: Options,
    sent: Learned<Sent>,
}

impl AnthropicClient {
    /// Asks nobody yet. Anthropic itself wants a key; another server may do without.
    pub fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        let url = match settings.url.trim() {
            "" => URL,
            // The path begins with it, and many write it already.
            url => url.trim_end_matches('/').trim_end_matches("/v1"),
        };
        let model = match settings.name.as_str() {
            "" => PROVIDER.default_model(),
            name => name,
        };
        if settings.key.trim().is_empty() && url == URL {
            return Err(PROVIDER.no_key());
        }
        let format = AnthropicFormat {
            endpoint: Endpoint {
                http: Http::new(PROVIDER, url, settings)?,
                headers: headers(&settings.key)?,
            },
            options: Options {
                model: model.to_owned(),
                max_tokens: settings.max_tokens,
                window: settings.context_tokens.unwrap_or(WINDOW),
                temperature: settings.temperature,
            },
            sent: Learned::new(Sent {
                temperature: settings.temperature.is_some(),
                seed: false,
                think: settings.think == Some(true),
            }),
        };
        Ok(Self::with_format(format, settings))
    }
}

impl WireFormat for AnthropicFormat {
    const PROVIDER: Provider = PROVIDER;
    const DIALECT: &'static Dialect = &tools::DIALECT;
    const FORM: ToolForm = tools::form;

    type Habits = Sent;
    type Reader<'a> = Stream<'a>;

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn path(&self) -> &str {
        "/v1/messages"
    }

    fn model(&self) -> &str {
        &self.options.model
    }

    fn window(&self) -> usize {
        self.options.window
    }

    fn habits(&self) -> &Learned<Sent> {
        &self.sent
    }

    fn body(&self, request: &Request<'_>, sent: Sent) -> Result<Vec<u8>, String> {
        request::body(&self.options, sent, request)
    }

    fn reader<'a>(&self, request: &Request<'a>) -> Stream<'a> {
        Stream::new(request.tools.catalog())
    }

    fn status(error: &Value) -> u16 {
        status(error["error"]["type"].as_str().unwrap_or_default())
    }
}

pub(crate) fn headers(key: &str) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
    if !key.trim().is_empty() {
        headers.insert("x-api-key", secret(PROVIDER, key)?);
    }
    Ok(headers)
}

/// The status that an error would have had, had it come before the stream began.
fn status(kind: &str) -> u16 {
    match kind {
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

#[cfg(test)]
mod tests;
