//! `search`: the web, through the back end the configuration names.
//!
//! `duckduckgo`, `searxng` and `brave` each know their own address, question and answer; `http` does the asking within bounds;
//! `clean` makes plain text of what comes back.

use std::fmt;
use std::sync::Arc;

use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_core::{
    Annotations, CallContext, Handler, ToolError, ToolFuture, ToolOutput, ValidArguments,
};

use self::http::{Http, Outage};
use super::Builtin;

mod brave;
mod clean;
mod duckduckgo;
mod http;
mod searxng;

pub(super) fn builtin(settings: &SearchSettings) -> Builtin {
    Builtin {
        name: "search",
        description: "Searches the web and returns titles, addresses and short extracts, and a direct answer where there is \
                      one. Use it for facts that are recent or that you are not sure of.",
        parameters: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "query": { "type": "string", "minLength": 1, "maxLength": 400, "description": "What to search for" },
                "max_results": { "type": "integer", "minimum": 1, "maximum": 20, "default": 5, "description": "How many results at most" }
            },
            "required": ["query"]
        }),
        annotations: Annotations::READ_ONLY,
        handler: Arc::new(Search {
            settings: settings.clone(),
            http: Http::default(),
        }),
    }
}

/// The configuration's `search` section.
///
/// ```
/// use toolgate_tools::builtin::SearchSettings;
///
/// let settings: SearchSettings = serde_json::from_str(r#"{ "backend": "brave", "key": "s3cret" }"#).unwrap();
/// assert!(!format!("{settings:?}").contains("s3cret"));
/// ```
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Web search")]
#[non_exhaustive]
pub struct SearchSettings {
    /// Who is asked.
    pub backend: SearchBackend,
    /// Where to ask, instead of the back end's usual address; SearXNG has none of its own.
    pub url: String,
    /// The secret some back ends want to see. It is only sent to `url`, or else to the back end's usual address.
    pub key: String,
    /// Nobody is asked: the answer says that it is simulated. For a demo, which must not reach the network; not to be configured.
    #[serde(skip)]
    pub simulated: bool,
}

impl fmt::Debug for SearchSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address may hold a login.
        let url = self
            .url
            .rsplit_once('@')
            .map_or(self.url.as_str(), |(_, host)| host);
        let key = if self.key.is_empty() { "" } else { "…" };
        f.debug_struct("SearchSettings")
            .field("backend", &self.backend)
            .field("url", &url)
            .field("key", &key)
            .finish()
    }
}

/// Who answers a search.
///
/// ```
/// assert_eq!(toolgate_tools::builtin::SearchBackend::default(), toolgate_tools::builtin::SearchBackend::Duckduckgo);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "Who answers a search")]
#[non_exhaustive]
pub enum SearchBackend {
    /// DuckDuckGo's instant answers: no key, no set-up, topics rather than pages.
    #[default]
    Duckduckgo,
    /// A SearXNG instance with the `json` format enabled.
    Searxng,
    /// Brave's Search API, with a key.
    Brave,
}

impl SearchBackend {
    fn name(self) -> &'static str {
        match self {
            Self::Duckduckgo => "DuckDuckGo",
            Self::Searxng => "SearXNG",
            Self::Brave => "Brave",
        }
    }

    fn request(self, settings: &SearchSettings, asked: &Asked) -> Result<reqwest::Request, Outage> {
        match self {
            Self::Duckduckgo => duckduckgo::request(settings, asked),
            Self::Searxng => searxng::request(settings, asked),
            Self::Brave => brave::request(settings, asked),
        }
    }

    fn read(self, answer: &Value) -> Found {
        match self {
            Self::Duckduckgo => duckduckgo::read(answer),
            Self::Searxng => searxng::read(answer),
            Self::Brave => brave::read(answer),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Asked {
    query: String,
    #[serde(default = "five")]
    max_results: u32,
}

fn five() -> u32 {
    5
}

#[derive(Debug, Default, PartialEq, Serialize)]
struct Found {
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    results: Vec<Hit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Hit {
    title: String,
    url: String,
    snippet: String,
}

impl Hit {
    /// Nothing for what has no title or no address of a web page.
    fn new(title: &Value, url: &Value, snippet: &Value) -> Option<Self> {
        Some(Self {
            title: clean::title(title)?,
            url: clean::url(url)?,
            snippet: clean::snippet(snippet).unwrap_or_default(),
        })
    }
}

struct Search {
    settings: SearchSettings,
    http: Http,
}

impl Handler for Search {
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let asked: Asked = arguments.parse()?;
            if asked.query.trim().is_empty() {
                return Err(ToolError::invalid("query", "must not be blank"));
            }
            match self.find(&asked).await {
                Ok(found) => Ok(ToolOutput::json(json!(found))),
                Err(outage) => Err(outage.of(context.tool_name())),
            }
        })
    }
}

impl Search {
    async fn find(&self, asked: &Asked) -> Result<Found, Outage> {
        if self.settings.simulated {
            return Ok(simulated(&asked.query));
        }
        let backend = self.settings.backend;
        let request = backend.request(&self.settings, asked)?;
        let answer = self.http.json(backend, request).await?;
        let mut found = backend.read(&answer);
        found.results.truncate(asked.max_results as usize);
        Ok(found)
    }
}

fn simulated(query: &str) -> Found {
    Found {
        answer: None,
        results: vec![Hit {
            title: format!("A simulated result for “{}”", query.trim()),
            url: "https://example.com/".to_owned(),
            snippet: "The demo doesn't search the web; `toolgate call search` does.".to_owned(),
        }],
        note: Some("This result is simulated: nobody was asked."),
    }
}

impl SearchSettings {
    /// The address to ask: the configured one, else `usual`.
    fn address(&self, usual: &str) -> Result<Url, Outage> {
        let text = if self.url.trim().is_empty() {
            usual
        } else {
            self.url.trim()
        };
        let url = Url::parse(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        url.ok_or_else(|| {
            Outage::new("`search.url` is no web address; write it like https://search.example.org")
        })
    }
}

#[cfg(test)]
mod tests;
