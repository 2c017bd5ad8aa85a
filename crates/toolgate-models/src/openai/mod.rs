//! OpenAI itself, and the many servers that speak its chat completions: llama.cpp, vLLM, LM Studio and the like.

mod calls;
mod request;
mod stream;
mod tools;
mod transcript;
mod wire;

use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::Value;

use self::request::{Options, ServerHabits};
use self::stream::Stream;
pub(crate) use self::tools::form;
use crate::catalog::Dialect;
use crate::http::{Failure, Http};
use crate::learned::Learned;
use crate::provider_client::ProviderClient;
use crate::wire_format::{Endpoint, ToolForm, WireFormat, bearer};
use crate::{ModelError, ModelSettings, Provider, Request};

const PROVIDER: Provider = Provider::OpenAi;
pub(crate) const URL: &str = "https://api.openai.com/v1";
const PATH: &str = "/chat/completions";
/// What OpenAI's own models can hold at least.
const WINDOW: usize = 128_000;
/// What others can hold, as far as nobody says more.
const WINDOW_ELSEWHERE: usize = 8192;
/// OpenAI refuses a request with more.
const MOST_TOOLS: usize = 128;

/// A client of OpenAI, or of another server that speaks its chat completions.
///
/// The key and the address are those of the settings; the environment is not looked at.
///
/// ```
/// use toolgate_models::{ModelClient, ModelSettings, OpenAiClient};
///
/// let mut settings = ModelSettings::default();
/// settings.url = "http://127.0.0.1:8080/v1".to_owned();
/// settings.name = "qwen3".to_owned();
/// let client = OpenAiClient::new(&settings)?;
/// assert_eq!((client.model(), client.window()), ("qwen3", 8192));
/// # Ok::<_, toolgate_models::ModelError>(())
/// ```
pub type OpenAiClient = ProviderClient<OpenAiFormat>;

/// The chat completions.
pub struct OpenAiFormat {
    endpoint: Endpoint,
    options: Options,
    rescue: bool,
    habits: Learned<ServerHabits>,
    most_tools: Option<usize>,
}

impl OpenAiClient {
    /// Asks nobody yet. OpenAI itself wants a key; another server may do without.
    pub fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        let url = match settings.url.trim() {
            "" => URL,
            // The path ends with it, and some write all of it.
            url => url.trim_end_matches('/').trim_end_matches(PATH),
        };
        let official = is_official(url);
        if settings.key.trim().is_empty() && official {
            return Err(PROVIDER.no_key());
        }
        let model = match settings.name.trim() {
            "" => PROVIDER.default_model(),
            name => name,
        };
        let window = if official { WINDOW } else { WINDOW_ELSEWHERE };
        let options = Options {
            model: model.to_owned(),
            max_tokens: settings.max_tokens,
            window: settings.context_tokens.unwrap_or(window),
            temperature: settings.temperature,
            seed: settings.seed,
            enable_thinking: settings.think.filter(|_| !official),
        };
        let format = OpenAiFormat {
            endpoint: Endpoint {
                http: Http::new(PROVIDER, url, settings)?,
                headers: headers(&settings.key)?,
            },
            habits: Learned::new(ServerHabits::new(official, &options)),
            options,
            // Its own models never write a call as text: what looks like one is an example.
            rescue: settings.rescue && !official,
            most_tools: official.then_some(MOST_TOOLS),
        };
        Ok(Self::with_format(format, settings))
    }
}

impl WireFormat for OpenAiFormat {
    const PROVIDER: Provider = PROVIDER;
    const DIALECT: &'static Dialect = &tools::DIALECT;
    const FORM: ToolForm = tools::form;

    type Habits = ServerHabits;
    type Reader<'a> = Stream<'a>;

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn path(&self) -> &str {
        PATH
    }

    fn model(&self) -> &str {
        &self.options.model
    }

    fn window(&self) -> usize {
        self.options.window
    }

    fn most_tools(&self) -> Option<usize> {
        self.most_tools
    }

    fn habits(&self) -> &Learned<ServerHabits> {
        &self.habits
    }

    fn rescues(&self) -> bool {
        self.rescue
    }

    fn body(&self, request: &Request<'_>, habits: ServerHabits) -> Result<Vec<u8>, String> {
        request::body(&self.options, habits, request)
    }

    fn reader<'a>(&self, request: &Request<'a>) -> Stream<'a> {
        Stream::new(request.tools)
    }

    fn status(error: &Value) -> u16 {
        status(error)
    }

    fn explain(&self, mut failure: Failure) -> ModelError {
        if failure.status == 404 && !self.endpoint.http.shown().ends_with("/v1") {
            failure.message += "; the address usually ends in /v1";
        }
        failure.usual(&self.options.model)
    }
}

fn is_official(url: &str) -> bool {
    let url = Url::parse(url).ok();
    url.is_some_and(|url| url.host_str() == Some("api.openai.com"))
}

pub(crate) fn headers(key: &str) -> Result<HeaderMap, ModelError> {
    bearer(PROVIDER, key)
}

pub(crate) fn owns_model(name: &str) -> bool {
    let is_numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    ["gpt-", "chatgpt-", "codex-", "ft:"]
        .iter()
        .any(|start| name.starts_with(start))
        || name.strip_prefix('o').is_some_and(is_numbered)
}

/// The status that an error would have had, had it come before the stream began.
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

#[cfg(test)]
mod tests;
