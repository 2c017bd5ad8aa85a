//! Brave's Search API.

use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Method, Request};
use serde_json::Value;

use super::{Asked, Found, Hit, Outage, SearchSettings};

pub(super) fn request(settings: &SearchSettings, asked: &Asked) -> Result<Request, Outage> {
    let key = settings.key.trim();
    if key.is_empty() {
        return Err(Outage::new(
            "Brave needs a key; set `search.key` to one from https://brave.com/search/api",
        ));
    }
    let mut token = HeaderValue::from_str(key)
        .map_err(|_| Outage::new("`search.key` has characters that no key has; copy it again"))?;
    token.set_sensitive(true);

    let mut url = settings.address("https://api.search.brave.com/res/v1/web/search")?;
    if url.scheme() != "https" && !toolgate_net::is_this_machine(&url) {
        return Err(Outage::new(
            "`search.url` is not https, so anyone on the way could read the key; change it to https",
        ));
    }
    url.query_pairs_mut()
        .append_pair("q", &asked.query)
        .append_pair("count", &asked.max_results.to_string())
        .append_pair("text_decorations", "false");
    let mut request = Request::new(Method::GET, url);
    request
        .headers_mut()
        .insert(ACCEPT, HeaderValue::from_static("application/json"));
    request.headers_mut().insert("x-subscription-token", token);
    Ok(request)
}

pub(super) fn read(answer: &Value) -> Found {
    let hits = answer["web"]["results"].as_array().into_iter().flatten();
    let results = hits
        .filter_map(|hit| Hit::new(&hit["title"], &hit["url"], &hit["description"]))
        .collect();
    Found {
        results,
        ..Found::default()
    }
}
