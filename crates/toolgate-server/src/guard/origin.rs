//! Identifies the page behind a request by `Origin` and `Sec-Fetch-Site`.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

use super::host::AllowedHosts;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PageOrigin {
    // No page: a program, or a browser in which a person entered our address.
    None,
    Own,
    // A page that the configuration lists. It may read the response.
    Listed(HeaderValue),
}

pub(super) struct AllowedOrigins(Vec<Box<str>>);

impl AllowedOrigins {
    pub(super) fn new(listed: &[String]) -> Self {
        Self(listed.iter().map(|origin| origin.as_str().into()).collect())
    }

    /// Returns the page behind a request, or an error that describes a foreign one.
    pub(super) fn check(
        &self,
        hosts: &AllowedHosts,
        host: &str,
        local: IpAddr,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<PageOrigin, String> {
        let page = match single_header(headers, &header::ORIGIN)? {
            None => PageOrigin::None,
            Some(origin) => self.classify(hosts, host, local, origin)?,
        };
        if page == PageOrigin::None {
            expect_no_foreign_page(method, headers)?;
        }
        Ok(page)
    }

    fn classify(
        &self,
        hosts: &AllowedHosts,
        host: &str,
        local: IpAddr,
        origin: &HeaderValue,
    ) -> Result<PageOrigin, String> {
        let text = origin.to_str().unwrap_or("unreadable");
        let (usual_port, authority) = match text.split_once("://") {
            Some(("http", authority)) => (80, authority),
            Some(("https", authority)) => (443, authority),
            _ => (0, ""),
        };
        if !authority.is_empty()
            && (authority.eq_ignore_ascii_case(host)
                || hosts.is_own_page(authority, usual_port, local))
        {
            return Ok(PageOrigin::Own);
        }
        let mut listed = self.0.iter();
        if listed.any(|listed| listed.eq_ignore_ascii_case(text)) {
            return Ok(PageOrigin::Listed(origin.clone()));
        }
        Err(format!("the origin '{}'", excerpt(text)))
    }
}

// A foreign image or script tag sends no `Origin`, but browsers mark it in another header.
fn expect_no_foreign_page(method: &Method, headers: &HeaderMap) -> Result<(), String> {
    const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
    const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
    let Some(site) = headers.get(SITE) else {
        return Ok(());
    };
    // People may follow a link from any page.
    let is_navigation =
        || *method == Method::GET && headers.get(MODE).is_some_and(|mode| mode == "navigate");
    if site == "same-origin" || site == "none" || is_navigation() {
        return Ok(());
    }
    Err("a page of another site".to_owned())
}

/// Rejects a repeated header, because a proxy may have acted on the other value.
pub(super) fn single_header<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a HeaderValue>, String> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    match values.next() {
        None => Ok(first),
        Some(_) => Err(format!("a request with two {name} headers")),
    }
}

// Cuts and escapes untrusted text, so that it can be shown.
pub(super) fn excerpt(text: &str) -> String {
    let cut: String = text.chars().take(100).collect();
    toolgate_core::text::escape(&cut).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        pairs: &[(&'static str, &'static str)],
        method: &Method,
    ) -> Result<PageOrigin, String> {
        let hosts = AllowedHosts::new(
            ([127, 0, 0, 1], 7460).into(),
            &["tools.example.org".to_owned()],
        );
        let origins = AllowedOrigins::new(&[
            "https://app.example.org".to_owned(),
            "vscode-webview://panel".to_owned(),
        ]);
        let headers = pairs.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        let mut map = HeaderMap::new();
        headers.for_each(|(name, value)| {
            map.append(name, value);
        });
        origins.check(
            &hosts,
            "localhost:7460",
            [127, 0, 0, 1].into(),
            method,
            &map,
        )
    }

    #[test]
    fn only_own_and_listed_pages_are_admitted() {
        let listed = |origin| Some(PageOrigin::Listed(HeaderValue::from_static(origin)));
        let table = [
            ("http://localhost:7460", Some(PageOrigin::Own)),
            ("http://127.0.0.1:7460", Some(PageOrigin::Own)),
            ("http://[::1]:7460", Some(PageOrigin::Own)),
            ("https://tools.example.org", Some(PageOrigin::Own)),
            ("https://app.example.org", listed("https://app.example.org")),
            ("vscode-webview://panel", listed("vscode-webview://panel")),
            ("http://app.example.org", None),
            ("https://app.example.org.evil.test", None),
            ("https://app.example.org:8443", None),
            ("http://localhost", None),
            ("http://localhost:3000", None),
            ("ftp://localhost:7460", None),
            ("localhost:7460", None),
            ("null", None),
            ("", None),
            ("http://", None),
            ("*", None),
            ("https://evil.test", None),
            ("http://localhost:7460, https://evil.test", None),
        ];
        for (origin, expected) in table {
            let page = check(&[("origin", origin)], &Method::POST);
            assert_eq!(page.clone().ok(), expected, "{origin:?}: {page:?}");
        }
    }

    #[test]
    fn requests_of_foreign_pages_are_recognized_by_fetch_metadata() {
        type Row = (&'static [(&'static str, &'static str)], Method, bool);
        let table: [Row; 8] = [
            (&[], Method::POST, true),
            (&[("sec-fetch-site", "same-origin")], Method::GET, true),
            (&[("sec-fetch-site", "none")], Method::GET, true),
            (&[("sec-fetch-site", "cross-site")], Method::GET, false),
            (&[("sec-fetch-site", "same-site")], Method::GET, false),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                ],
                Method::GET,
                true,
            ),
            (
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                ],
                Method::POST,
                false,
            ),
            (
                &[
                    ("origin", "http://localhost:7460"),
                    ("origin", "https://evil.test"),
                ],
                Method::GET,
                false,
            ),
        ];
        for (headers, method, admitted) in table {
            assert_eq!(
                check(headers, &method).is_ok(),
                admitted,
                "{method} {headers:?}"
            );
        }
    }
}
