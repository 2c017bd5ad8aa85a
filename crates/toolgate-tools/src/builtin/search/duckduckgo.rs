//! Builds requests for DuckDuckGo's instant answers, and parses them. They cover topics, not pages.

use reqwest::{Method, Request};
use serde_json::Value;

use super::{SearchArguments, SearchError, SearchResults, SearchSettings, WebResult, plain_text};

pub(super) fn build_request(
    settings: &SearchSettings,
    arguments: &SearchArguments,
) -> Result<Request, SearchError> {
    let mut url = settings.address("https://api.duckduckgo.com/")?;
    url.query_pairs_mut()
        .append_pair("q", &arguments.query)
        .append_pair("format", "json")
        .append_pair("no_html", "1")
        .append_pair("no_redirect", "1")
        .append_pair("skip_disambig", "1");
    Ok(Request::new(Method::GET, url))
}

pub(super) fn parse_response(response: &Value) -> SearchResults {
    let summary = WebResult::new(
        &response["Heading"],
        &response["AbstractURL"],
        &response["AbstractText"],
    );
    let topics = [&response["Results"], &response["RelatedTopics"]]
        .into_iter()
        .filter_map(Value::as_array)
        .flatten();
    let results: Vec<WebResult> = summary
        .into_iter()
        .chain(topics.flat_map(topic_results))
        .collect();
    let direct = ["Answer", "AbstractText", "Definition"]
        .into_iter()
        .find_map(|key| plain_text::snippet(&response[key]));
    let note = (results.is_empty() && direct.is_none()).then_some(
        "DuckDuckGo's instant answers know topics, not pages. Try the name of a thing, or configure SearXNG or Brave as `search.backend`.",
    );
    SearchResults {
        answer: direct,
        results,
        note,
    }
}

fn topic_results(topic: &Value) -> Vec<WebResult> {
    match topic["Topics"].as_array() {
        Some(group) => group.iter().filter_map(hit).collect(),
        None => hit(topic).into_iter().collect(),
    }
}

// A topic's text begins with its title: `Rust - A programming language`.
fn hit(topic: &Value) -> Option<WebResult> {
    let text = topic["Text"].as_str()?;
    let title = text.split_once(" - ").map_or(text, |(title, _)| title);
    WebResult::new(&Value::from(title), &topic["FirstURL"], &topic["Text"])
}
