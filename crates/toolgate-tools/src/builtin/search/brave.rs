//! Builds requests to Brave's Search API, and parses its responses.

use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Method, Request};
use serde_json::Value;

use super::{SearchArguments, SearchError, SearchResults, SearchSettings, WebResult};

pub(super) fn build_request(
    settings: &SearchSettings,
    arguments: &SearchArguments,
) -> Result<Request, SearchError> {
    let key = settings.key.trim();
    if key.is_empty() {
        return Err(SearchError::new(
            "Brave needs a key; set `search.key` to one from https://brave.com/search/api",
        ));
    }
    let mut token = HeaderValue::from_str(key).map_err(|_| {
        SearchError::new(
            "`search.key` contains characters that are invalid in a key; copy it again",
        )
    })?;
    token.set_sensitive(true);

    let mut url = settings.address("https://api.search.brave.com/res/v1/web/search")?;
    if url.scheme() != "https" && !toolgate_net::is_local_url(&url) {
        return Err(SearchError::new(
            "`search.url` is not https, so the key could be read in transit; change it to https",
        ));
    }
    url.query_pairs_mut()
        .append_pair("q", &arguments.query)
        .append_pair("count", &arguments.max_results.to_string())
        .append_pair("text_decorations", "false");
    let mut request = Request::new(Method::GET, url);
    request
        .headers_mut()
        .insert(ACCEPT, HeaderValue::from_static("application/json"));
    request.headers_mut().insert("x-subscription-token", token);
    Ok(request)
}

pub(super) fn parse_response(response: &Value) -> SearchResults {
    let hits = response["web"]["results"].as_array().into_iter().flatten();
    let results = hits
        .filter_map(|hit| WebResult::new(&hit["title"], &hit["url"], &hit["description"]))
        .collect();
    SearchResults {
        results,
        ..SearchResults::default()
    }
}
