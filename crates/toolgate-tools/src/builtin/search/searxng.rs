//! A SearXNG instance, asked through its JSON format.

use reqwest::{Method, Request};
use serde_json::Value;

use super::{Asked, Found, Hit, Outage, SearchSettings, clean};

pub(super) fn request(settings: &SearchSettings, asked: &Asked) -> Result<Request, Outage> {
    if settings.url.trim().is_empty() {
        return Err(Outage::new(
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
        .append_pair("q", &asked.query)
        .append_pair("format", "json");
    Ok(Request::new(Method::GET, url))
}

pub(super) fn read(answer: &Value) -> Found {
    let items = |key: &str| answer[key].as_array().into_iter().flatten();
    // An answer was a string until 2025 and is an object since.
    let direct = items("answers")
        .find_map(|answer| clean::snippet(answer).or_else(|| clean::snippet(&answer["answer"])));
    let infobox = || items("infoboxes").find_map(|infobox| clean::snippet(&infobox["content"]));
    Found {
        answer: direct.or_else(infobox),
        results: items("results")
            .filter_map(|hit| Hit::new(&hit["title"], &hit["url"], &hit["content"]))
            .collect(),
        note: None,
    }
}
