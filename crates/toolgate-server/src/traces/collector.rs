//! Sends spans to a collector over OTLP/HTTP.

use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use reqwest::{Client, Url};
use toolgate_net::root_cause;

use super::span::{TraceSpan, encode_spans};

// A collector that takes longer counts as unreachable.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
// The environment variables from which OpenTelemetry exporters read headers, such as API keys. The
// first one that is set counts.
const HEADERS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
];

/// A trait, so that tests can record spans instead of sending them.
pub(super) trait SpanExporter: Send + Sync {
    fn export(&self, spans: Vec<TraceSpan>) -> impl Future<Output = Result<(), String>> + Send;
}

pub(super) struct OtlpCollector {
    client: Client,
    endpoint: Url,
    headers: HeaderMap,
}

impl OtlpCollector {
    pub(super) fn new(address: &Url) -> Result<Self, String> {
        let mut endpoint = address.clone();
        if !endpoint.path().ends_with("/v1/traces") {
            let path = format!("{}/v1/traces", address.path().trim_end_matches('/'));
            endpoint.set_path(&path);
        }
        let client = toolgate_net::client_builder(toolgate_net::is_local_url(address))
            .timeout(REQUEST_TIMEOUT)
            .build()
            .map_err(|error| error.to_string())?;
        let given = HEADERS.iter().find_map(|name| std::env::var(name).ok());
        Ok(Self {
            client,
            endpoint,
            headers: headers(&given.unwrap_or_default()),
        })
    }
}

impl SpanExporter for OtlpCollector {
    async fn export(&self, spans: Vec<TraceSpan>) -> Result<(), String> {
        let request = self
            .client
            .post(self.endpoint.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(encode_spans(&spans));
        let answer = request.send().await.map_err(|error| root_cause(&error))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("the collector answered {status}")),
        }
    }
}

/// Parses `name=value,name=value` with percent-encoded values. Skips what can't be a header.
fn headers(text: &str) -> HeaderMap {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .filter_map(|(name, value)| {
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            let name: HeaderName = name.trim().parse().ok()?;
            let mut value: HeaderValue = value.parse().ok()?;
            value.set_sensitive(true);
            Some((name, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_other_exporters_read_them() {
        let found = headers("api-key=a%20b, x-team = one,nonsense,=3,bad name=1");
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found["api-key"], "a b");
        assert_eq!(found["x-team"], "one");
        assert!(!format!("{found:?}").contains("a b"));
    }
}
