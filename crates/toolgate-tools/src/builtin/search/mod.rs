//! `search`: searches the web through the configured back end.
//!
//! `duckduckgo`, `searxng` and `brave` build the request and parse the response of one service.
//! `search_client` sends the request, and `plain_text` cleans the texts of the response.

use std::fmt;
use std::sync::Arc;

use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_core::{
    Annotations, CallContext, Handler, ToolError, ToolFuture, ToolOutput, ValidArguments,
};

use self::search_client::{SearchClient, SearchError};
use super::BuiltinTool;

mod brave;
mod duckduckgo;
mod plain_text;
mod search_client;
mod searxng;

pub(super) fn builtin(settings: &SearchSettings) -> BuiltinTool {
    BuiltinTool {
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
        handler: Arc::new(SearchHandler {
            settings: settings.clone(),
            http: SearchClient::default(),
        }),
    }
}

/// The configuration's `search` section.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Web search")]
#[non_exhaustive]
pub struct SearchSettings {
    /// The search service.
    pub backend: SearchBackend,
    /// The service's address, if not its usual one; SearXNG has no usual address.
    pub url: String,
    /// The API key, for services that need one. It is only sent to `url`, or else to
    /// the service's usual address.
    pub key: String,
    /// Returns a simulated result without any request. For the demo, which must not reach the
    /// network; it can't be configured.
    #[serde(skip)]
    pub simulated: bool,
}

impl fmt::Debug for SearchSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may contain a login.
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

/// The service that answers the tool `search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "A search service")]
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

    fn build_request(
        self,
        settings: &SearchSettings,
        arguments: &SearchArguments,
    ) -> Result<reqwest::Request, SearchError> {
        match self {
            Self::Duckduckgo => duckduckgo::build_request(settings, arguments),
            Self::Searxng => searxng::build_request(settings, arguments),
            Self::Brave => brave::build_request(settings, arguments),
        }
    }

    fn parse_response(self, response: &Value) -> SearchResults {
        match self {
            Self::Duckduckgo => duckduckgo::parse_response(response),
            Self::Searxng => searxng::parse_response(response),
            Self::Brave => brave::parse_response(response),
        }
    }
}

#[derive(Debug, Deserialize)]
struct SearchArguments {
    query: String,
    #[serde(default = "default_max_results")]
    max_results: u32,
}

fn default_max_results() -> u32 {
    5
}

#[derive(Debug, Default, PartialEq, Serialize)]
struct SearchResults {
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    results: Vec<WebResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

#[derive(Debug, PartialEq, Serialize)]
struct WebResult {
    title: String,
    url: String,
    snippet: String,
}

impl WebResult {
    /// Returns `None` if the title or the web address is missing.
    fn new(title: &Value, url: &Value, snippet: &Value) -> Option<Self> {
        Some(Self {
            title: plain_text::title(title)?,
            url: plain_text::url(url)?,
            snippet: plain_text::snippet(snippet).unwrap_or_default(),
        })
    }
}

struct SearchHandler {
    settings: SearchSettings,
    http: SearchClient,
}

impl Handler for SearchHandler {
    fn call<'a>(&'a self, arguments: ValidArguments, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments: SearchArguments = arguments.parse()?;
            if arguments.query.trim().is_empty() {
                return Err(ToolError::invalid("query", "must not be blank"));
            }
            match self.search(&arguments).await {
                Ok(results) => Ok(ToolOutput::json(json!(results))),
                Err(error) => Err(error.into_tool_error(context.tool_name())),
            }
        })
    }
}

impl SearchHandler {
    async fn search(&self, arguments: &SearchArguments) -> Result<SearchResults, SearchError> {
        if self.settings.simulated {
            return Ok(simulated_results(&arguments.query));
        }
        let backend = self.settings.backend;
        let request = backend.build_request(&self.settings, arguments)?;
        let response = self.http.fetch_json(backend, request).await?;
        let mut results = backend.parse_response(&response);
        results.results.truncate(arguments.max_results as usize);
        Ok(results)
    }
}

fn simulated_results(query: &str) -> SearchResults {
    SearchResults {
        answer: None,
        results: vec![WebResult {
            title: format!("A simulated result for “{}”", query.trim()),
            url: "https://example.com/".to_owned(),
            snippet: "The demo doesn't search the web; `toolgate call search` does.".to_owned(),
        }],
        note: Some("This result is simulated: no search engine was asked."),
    }
}

impl SearchSettings {
    /// The configured address, else `usual`.
    fn address(&self, usual: &str) -> Result<Url, SearchError> {
        let text = if self.url.trim().is_empty() {
            usual
        } else {
            self.url.trim()
        };
        let url = Url::parse(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        url.ok_or_else(|| {
            SearchError::new(
                "`search.url` is not a web address; write it like https://search.example.org",
            )
        })
    }
}

#[cfg(test)]
mod tests;
