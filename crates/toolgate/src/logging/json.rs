//! Log records as JSON, one object per line. A field has the same type in every record, so that
//! stores with typed columns can take them. `docs/logs.md` lists the fields.

use std::fmt;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

// `tracing` has no objects, so this field carries JSON as text.
const OBJECT: &str = "arguments";
// Holds text that was cut, or isn't an object.
const RAW: &str = "raw";
// Belongs to the record. A span carries it because the text log would append it to the last
// line of a block.
const LIFTED: &str = "server";

pub(super) struct JsonLogFormat;

impl<S> FormatEvent<S, JsonFields> for JsonLogFormat
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let now = jiff::Timestamp::now();
        let mut record = JsonRecord(Map::new());
        record.insert("timestamp", format!("{now:.6}"));
        record.insert("level", event.metadata().level().as_str());
        event.record(&mut record);
        let mut record = record.0;
        let spans = context.event_scope().into_iter();
        let mut spans: Vec<Value> = spans.flatten().map(|span| span_fields(&span)).collect();
        if let Some(innermost) = spans.first().cloned() {
            if let (None, Some(lifted)) = (record.get(LIFTED), innermost.get(LIFTED)) {
                record.insert(LIFTED.to_owned(), lifted.clone());
            }
            record.insert("span".to_owned(), innermost);
            spans.reverse();
            record.insert("spans".to_owned(), spans.into());
        }
        writeln!(writer, "{}", Value::Object(record))
    }
}

fn span_fields<S: for<'span> LookupSpan<'span>>(span: &SpanRef<'_, S>) -> Value {
    let extensions = span.extensions();
    let fields = extensions.get::<FormattedFields<JsonFields>>();
    let fields = fields.and_then(|fields| serde_json::from_str(fields.as_str()).ok());
    let mut fields = fields.unwrap_or_else(|| json!({}));
    fields["name"] = span.name().into();
    fields
}

struct JsonRecord(Map<String, Value>);

impl JsonRecord {
    fn insert(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn put_text(&mut self, field: &Field, text: String) {
        let value = match field.name() {
            OBJECT => match serde_json::from_str(&text) {
                Ok(object @ Value::Object(_)) => object,
                _ => json!({ RAW: text }),
            },
            _ => Value::String(text),
        };
        self.insert(field.name(), value);
    }
}

impl Visit for JsonRecord {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field.name(), value);
    }

    // `Duration::as_millis` has this type. None of our figures exceeds 64 bits.
    fn record_u128(&mut self, field: &Field, value: u128) {
        self.insert(field.name(), u64::try_from(value).unwrap_or(u64::MAX));
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.insert(field.name(), i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put_text(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tracing::{error_span, info};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn records(log: impl FnOnce()) -> Vec<Value> {
        let written = LogBuffer::default();
        let writer = written.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .fmt_fields(JsonFields::new())
            .event_format(JsonLogFormat);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let text = String::from_utf8(written.0.lock().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    #[test]
    fn every_field_has_one_type() {
        let records = records(|| {
            let caller: Option<&str> = None;
            info!(elapsed_ms = 1117_u128, slow = true, caller, "one");
            info!(elapsed_ms = 0.25, arguments = %r#"{"a":1}"#, "two");
            info!(arguments = %r#"{"a":"xxx… (600 bytes)"#, "three");
            info!(arguments = "[1]", "four");
        });
        assert_eq!(records[0]["elapsed_ms"], 1117);
        assert_eq!(records[0]["slow"], true);
        assert!(records[0].get("caller").is_none());
        assert_eq!(records[1]["elapsed_ms"], 0.25);
        let arguments = records[1..].iter().map(|record| &record["arguments"]);
        let arguments: Vec<_> = arguments.collect();
        assert_eq!(
            arguments,
            [
                &json!({ "a": 1 }),
                &json!({ "raw": r#"{"a":"xxx… (600 bytes)"# }),
                &json!({ "raw": "[1]" }),
            ]
        );
        let first = records[0].as_object().unwrap();
        assert!(first.keys().take(3).eq(["timestamp", "level", "message"]));
        let time = records[0]["timestamp"].as_str().unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }

    #[test]
    fn a_block_is_one_record_that_names_its_server() {
        let records = records(|| {
            error_span!("mcp", server = "zwave").in_scope(|| info!("failed\n❌ block\n   Reason"));
        });
        assert_eq!(records.len(), 1);
        assert_eq!(records[0]["message"], "failed\n❌ block\n   Reason");
        assert_eq!(records[0]["server"], "zwave");
        assert_eq!(records[0]["span"]["name"], "mcp");
    }

    #[test]
    fn a_request_is_named_by_its_span() {
        let records = records(|| {
            error_span!("request", id = "r1").in_scope(|| info!("in it"));
        });
        assert_eq!(records[0]["span"], json!({ "id": "r1", "name": "request" }));
        assert_eq!(
            records[0]["spans"],
            json!([{ "id": "r1", "name": "request" }])
        );
    }
}
