//! Google's Gemini, by `streamGenerateContent`.

mod request;
mod stream;
mod tools;
mod transcript;

use reqwest::header::HeaderMap;
use serde_json::Value;

use self::request::{ModelHabits, Options};
use self::stream::Stream;
use crate::catalog::Dialect;
use crate::http::{Failure, Http, secret};
use crate::learned::{Learned, Sent};
use crate::provider_client::ProviderClient;
use crate::wire_format::{Endpoint, ToolForm, WireFormat};
use crate::{ModelError, ModelSettings, Provider, Request};

const PROVIDER: Provider = Provider::Gemini;
pub(crate) const URL: &str = "https://generativelanguage.googleapis.com";
const VERSION: &str = "/v1beta";
/// A thousand is the most that it lists at once.
pub(crate) const MODELS: &str = "/v1beta/models?pageSize=1000";
/// What every current model of this provider can hold at least.
const WINDOW: usize = 1_048_576;

/// A client of Google's Gemini API, or of another server that speaks it.
///
/// The key and the address are those of the settings; the environment is not looked at.
///
/// ```
/// use toolgate_models::{GeminiClient, ModelClient, ModelSettings};
///
/// let mut settings = ModelSettings::default();
/// settings.key = "AIza…".to_owned();
/// # settings.key = "AIza0".to_owned();
/// let client = GeminiClient::new(&settings)?;
/// assert_eq!((client.model(), client.window()), ("gemini-2.5-flash", 1_048_576));
/// # Ok::<_, toolgate_models::ModelError>(())
/// ```
pub type GeminiClient = ProviderClient<GeminiFormat>;

/// The Gemini API.
pub struct GeminiFormat {
    endpoint: Endpoint,
    path: String,
    options: Options,
    habits: Learned<ModelHabits>,
}

impl GeminiClient {
    /// Asks nobody yet. Google itself wants a key; another server may do without.
    pub fn new(settings: &ModelSettings) -> Result<Self, ModelError> {
        let url = match settings.url.trim() {
            "" => URL,
            // The path begins with it, and many write it already.
            url => url.trim_end_matches('/').trim_end_matches(VERSION),
        };
        let model = match settings.name.trim() {
            "" => PROVIDER.default_model(),
            // As the list of models writes them.
            name => name.strip_prefix("models/").unwrap_or(name),
        };
        let headers = headers(&settings.key)?;
        if headers.is_empty() && url == URL {
            return Err(PROVIDER.no_key());
        }
        let in_path = model.replace('?', "%3F").replace('#', "%23");
        let format = GeminiFormat {
            endpoint: Endpoint {
                http: Http::new(PROVIDER, url, settings)?,
                headers,
            },
            path: format!("{VERSION}/models/{in_path}:streamGenerateContent?alt=sse"),
            options: Options {
                model: model.to_owned(),
                max_tokens: settings.max_tokens,
                window: settings.context_tokens.unwrap_or(WINDOW),
                temperature: settings.temperature,
                seed: settings.seed,
                think: settings.think,
            },
            habits: Learned::new(ModelHabits {
                sent: Sent {
                    temperature: settings.temperature.is_some(),
                    seed: settings.seed.is_some(),
                    think: settings.think.is_some(),
                },
            }),
        };
        Ok(Self::with_format(format, settings))
    }
}

impl WireFormat for GeminiFormat {
    const PROVIDER: Provider = PROVIDER;
    const DIALECT: &'static Dialect = &tools::DIALECT;
    const FORM: ToolForm = tools::form;

    type Habits = ModelHabits;
    type Reader<'a> = Stream<'a>;

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn model(&self) -> &str {
        &self.options.model
    }

    fn window(&self) -> usize {
        self.options.window
    }

    fn habits(&self) -> &Learned<ModelHabits> {
        &self.habits
    }

    fn body(&self, request: &Request<'_>, habits: ModelHabits) -> Result<Vec<u8>, String> {
        request::body(&self.options, habits, request)
    }

    fn reader<'a>(&self, request: &Request<'a>) -> Stream<'a> {
        Stream::new(request.tools.catalog())
    }

    fn status(error: &Value) -> u16 {
        let error = error.get("error").unwrap_or(error);
        let status = error["code"].as_u64();
        let status = status.and_then(|status| u16::try_from(status).ok());
        status
            .filter(|status| (400..600).contains(status))
            .unwrap_or(500)
    }

    fn explain(&self, failure: Failure) -> ModelError {
        let said = failure.message.to_lowercase();
        match failure.status {
            // A wrong key is a bad request here.
            400 if said.contains("api key") => failure.wrong_key(),
            400 if said.contains("exceeds the maximum number of tokens") => ModelError::TooLong {
                model: self.options.model.clone(),
                reason: format!(
                    "{}; begin a new conversation, or offer fewer tools",
                    failure.message
                ),
            },
            // Every limit is called a quota; one that passes soon comes with a pause.
            429 if failure.retry_after.is_some() => failure.limited(),
            _ => failure.usual(&self.options.model),
        }
    }
}

pub(crate) fn headers(key: &str) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    if !key.trim().is_empty() {
        headers.insert("x-goog-api-key", secret(PROVIDER, key)?);
    }
    Ok(headers)
}

pub(crate) fn read_models(answer: &Value) -> (Vec<String>, bool) {
    let models = answer["models"].as_array().into_iter().flatten();
    let names = models.filter_map(|model| model["name"].as_str());
    let names = names.map(|name| name.strip_prefix("models/").unwrap_or(name).to_owned());
    (names.collect(), answer.get("nextPageToken").is_some())
}

#[cfg(test)]
mod tests;
