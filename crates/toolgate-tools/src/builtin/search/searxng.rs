//! Builds requests to a SearXNG instance, and parses its JSON responses.

use reqwest::{Method, Request};
use serde_json::Value;

use super::{SearchArguments, SearchError, SearchResults, SearchSettings, WebResult, plain_text};

pub(super) fn build_request(
    settings: &SearchSettings,
    arguments: &SearchArguments,
) -> Result<Request, SearchError> {
    if settings.url.trim().is_empty() {
        return Err(SearchError::new(
            "no SearXNG instance is configured; set `search.url` to the address of one",
        ));
    }
    let mut url = settings.address("")?;
    let path = url.path().trim_end_matches('/');
    let path = if path.ends_with("/search") {
        path.to_owned()
    } else {
        format!("{path}/search")
    };
    url.set_path(&path);
    url.query_pairs_mut()
        .append_pair("q", &arguments.query)
        .append_pair("format", "json");
    Ok(Request::new(Method::GET, url))
}

pub(super) fn parse_response(response: &Value) -> SearchResults {
    let items = |key: &str| response[key].as_array().into_iter().flatten();
    // Answers were strings until 2025 and are objects since.
    let direct = items("answers").find_map(|answer| {
        plain_text::snippet(answer).or_else(|| plain_text::snippet(&answer["answer"]))
    });
    let infobox =
        || items("infoboxes").find_map(|infobox| plain_text::snippet(&infobox["content"]));
    SearchResults {
        answer: direct.or_else(infobox),
        results: items("results")
            .filter_map(|hit| WebResult::new(&hit["title"], &hit["url"], &hit["content"]))
            .collect(),
        note: None,
    }
}
