//! Sends records as OTLP logs in JSON over HTTP.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::ForwardRecord;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const INFO: u8 = 9;
const WARN: u8 = 13;

pub(super) struct OtlpLogCollector {
    endpoint: reqwest::Url,
    client: reqwest::Client,
    // Made on the sending thread, the only one that blocks on it.
    runtime: Option<Runtime>,
}

impl OtlpLogCollector {
    pub(super) fn new(address: &str) -> Result<Self, String> {
        let mut endpoint = reqwest::Url::parse(address).map_err(|error| error.to_string())?;
        if !endpoint.path().ends_with("/v1/logs") {
            let path = format!("{}/v1/logs", endpoint.path().trim_end_matches('/'));
            endpoint.set_path(&path);
        }
        let client = toolgate_net::client_builder(toolgate_net::is_local_url(&endpoint))
            .timeout(REQUEST_TIMEOUT)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            endpoint,
            client,
            runtime: None,
        })
    }

    pub(super) fn send(&mut self, records: &[ForwardRecord]) -> Result<(), String> {
        let body = body(records).to_string();
        let request = self
            .client
            .post(self.endpoint.clone())
            .header("content-type", "application/json")
            .body(body);
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => {
                let runtime = Builder::new_current_thread().enable_all().build();
                runtime.map_err(|error| error.to_string())?
            }
        };
        let answer = runtime.block_on(async { request.send().await });
        self.runtime = Some(runtime);
        // Without the URL, which may contain a login.
        let answer = answer.map_err(|error| error.without_url().to_string())?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("the collector answered {status}")),
        }
    }
}

fn body(records: &[ForwardRecord]) -> Value {
    let records: Vec<Value> = records.iter().map(log_record).collect();
    json!({ "resourceLogs": [{
        "resource": { "attributes": [
            attribute("service.name", "toolgate"),
            attribute("service.version", env!("CARGO_PKG_VERSION")),
        ] },
        "scopeLogs": [{ "scope": { "name": "toolgate.journal" }, "logRecords": records }],
    }] })
}

fn log_record(record: &ForwardRecord) -> Value {
    let nanos = record.started_at.saturating_mul(1000).to_string();
    let (severity, text) = match record.is_failure {
        true => (WARN, "WARN"),
        false => (INFO, "INFO"),
    };
    let mut log = json!({
        "timeUnixNano": nanos,
        "severityNumber": severity,
        "severityText": text,
        "body": { "stringValue": record.json },
        "attributes": [
            attribute("event.name", "toolgate.call"),
            attribute("gen_ai.tool.name", &record.tool),
            attribute("gen_ai.tool.call.id", &record.id),
        ],
    });
    if let Some(trace_id) = &record.trace_id {
        log["traceId"] = trace_id.as_str().into();
    }
    log
}

fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}
