//! OpenAI, and the many servers with the same chat completions API: llama.cpp, vLLM,
//! LM Studio and others.

mod calls;
mod request;
mod stream;
mod tools;
mod transcript;
mod wire;

use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::Value;

use self::request::OpenAiCompat;
use self::stream::OpenAiReader;
pub(crate) use self::tools::encode_tool;
use crate::catalog::ToolDialect;
use crate::compat::SentOptions;
use crate::http::ErrorResponse;
use crate::provider_client::ProviderClient;
use crate::wire_format::{FormatCore, ToolEncoder, WireFormat, bearer_header};
use crate::{ModelError, ModelRequest, ModelSettings, Provider};

const PROVIDER: Provider = Provider::OpenAi;
pub(crate) const URL: &str = "https://api.openai.com/v1";
const PATH: &str = "/chat/completions";
// The smallest context window of OpenAI's own models, in tokens.
const WINDOW: usize = 128_000;
// The context window of other models, unless the server or the settings tell.
const WINDOW_ELSEWHERE: usize = 8192;
// OpenAI refuses a request with more tools.
const MAX_TOOLS: usize = 128;

/// A client for OpenAI, or for another server that speaks its chat completions.
///
/// The key and the address come from the settings; the environment is not read.
pub type OpenAiClient = ProviderClient<OpenAiFormat>;

pub struct OpenAiFormat(FormatCore<OpenAiCompat>);

impl OpenAiClient {
    pub fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        let official = settings.url.trim().is_empty() || is_official(&settings.url);
        if settings.key.trim().is_empty() && official {
            return Err(PROVIDER.missing_key_error());
        }
        let window = if official { WINDOW } else { WINDOW_ELSEWHERE };
        let mut settings = settings.clone();
        settings.think = settings.think.filter(|_| !official);
        let compat = OpenAiCompat::new(official, SentOptions::from_settings(&settings));
        let mut core = FormatCore::new(PROVIDER, &settings, window, compat)?;
        // OpenAI's own models never write calls as text, so what looks like one is an example.
        core.rescue = settings.rescue && !official;
        core.tool_limit = official.then_some(MAX_TOOLS);
        Ok(Self::with_format(OpenAiFormat(core), &settings))
    }
}

impl WireFormat for OpenAiFormat {
    const PROVIDER: Provider = PROVIDER;
    const DIALECT: &'static ToolDialect = &tools::DIALECT;
    const ENCODE_TOOL: ToolEncoder = tools::encode_tool;

    type Compat = OpenAiCompat;
    type Reader<'a> = OpenAiReader<'a>;

    fn core(&self) -> &FormatCore<OpenAiCompat> {
        &self.0
    }

    fn path(&self) -> &str {
        PATH
    }

    fn body(&self, request: &ModelRequest<'_>, compat: OpenAiCompat) -> Result<Vec<u8>, String> {
        request::body(&self.0.options, compat, request)
    }

    fn reader<'a>(&self, request: &ModelRequest<'a>) -> OpenAiReader<'a> {
        OpenAiReader::new(request.tools)
    }

    fn status(error: &Value) -> u16 {
        let error = error.get("error").unwrap_or(error);
        let code = &error["code"];
        let number = code.as_u64().or_else(|| code.as_str()?.parse().ok());
        if let Some(status @ 400..=599) = number.and_then(|number| u16::try_from(number).ok()) {
            return status;
        }
        let word = |value: &Value| match value.as_str()? {
            "invalid_request_error" | "context_length_exceeded" | "exceed_context_size_error" => {
                Some(400)
            }
            "authentication_error" | "invalid_api_key" => Some(401),
            "not_found_error" | "model_not_found" => Some(404),
            "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => Some(429),
            _ => None,
        };
        word(code).or_else(|| word(&error["type"])).unwrap_or(500)
    }

    fn to_model_error(&self, mut failure: ErrorResponse) -> ModelError {
        if failure.status == 404 && !self.0.http.display_url().ends_with("/v1") {
            failure.message += "; the address usually ends in /v1";
        }
        failure.into_model_error(&self.0.options.model)
    }
}

fn is_official(url: &str) -> bool {
    Url::parse(url.trim()).is_ok_and(|url| url.host_str() == Some("api.openai.com"))
}

pub(crate) fn headers(key: &str) -> Result<HeaderMap, ModelError> {
    bearer_header(PROVIDER, key)
}

pub(crate) fn owns_model(name: &str) -> bool {
    let is_numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    ["gpt-", "chatgpt-", "codex-", "ft:"]
        .iter()
        .any(|start| name.starts_with(start))
        || name.strip_prefix('o').is_some_and(is_numbered)
}

#[cfg(test)]
mod tests;
