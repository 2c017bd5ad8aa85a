//! The setting `journal.forward`: where records are forwarded to.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

/// Where records go besides the journal.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ForwardTargetForm")]
#[non_exhaustive]
pub enum ForwardTarget {
    /// An RFC 5424 datagram for each record, sent to `host:port`.
    SyslogUdp(String),
    /// Like `SyslogUdp`, but sent to a local Unix socket.
    SyslogUnix(PathBuf),
    /// A line of JSON for each record, appended to a file.
    File(PathBuf),
    /// OTLP logs over HTTP: the address of a collector.
    Otlp(String),
}

/// A [`ForwardTarget`] as the configuration file spells it.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "write \"syslog\", or { \"syslog\": \"udp://host:514\" }, { \"syslog\": \"unix:/dev/log\" }, { \"file\": PATH } or { \"otlp\": URL }"
)]
#[schemars(description = "Where records go besides the journal")]
enum ForwardTargetForm {
    Word(SyslogWord),
    Syslog(SyslogForm),
    File(FileForm),
    Otlp(OtlpForm),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SyslogWord {
    /// The local syslog, at `/dev/log`
    Syslog,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SyslogForm {
    /// `udp://host:514` or `unix:/dev/log`
    syslog: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FileForm {
    /// A file to append lines of JSON to
    file: PathBuf,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OtlpForm {
    /// The address of a collector, such as `http://localhost:4318`
    otlp: String,
}

impl JsonSchema for ForwardTarget {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Forward".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        ForwardTargetForm::json_schema(generator)
    }
}

impl TryFrom<ForwardTargetForm> for ForwardTarget {
    type Error = String;

    fn try_from(form: ForwardTargetForm) -> Result<Self, String> {
        Ok(match form {
            ForwardTargetForm::Word(SyslogWord::Syslog) => Self::SyslogUnix("/dev/log".into()),
            ForwardTargetForm::Syslog(SyslogForm { syslog }) => {
                match (syslog.strip_prefix("udp://"), syslog.strip_prefix("unix:")) {
                    (Some(address), _) if has_port(address) => {
                        Self::SyslogUdp(address.trim_end_matches('/').to_owned())
                    }
                    (_, Some(path)) if path.starts_with('/') => Self::SyslogUnix(path.into()),
                    _ => {
                        return Err("syslog: write udp://host:514 or unix:/dev/log".to_owned());
                    }
                }
            }
            ForwardTargetForm::File(FileForm { file }) => Self::File(file),
            ForwardTargetForm::Otlp(OtlpForm { otlp }) => {
                let url = reqwest::Url::parse(&otlp).ok();
                match url.filter(|url| matches!(url.scheme(), "http" | "https")) {
                    Some(_) => Self::Otlp(otlp),
                    None => return Err("otlp: write http://host:4318".to_owned()),
                }
            }
        })
    }
}

fn has_port(address: &str) -> bool {
    let port = address.trim_end_matches('/').rsplit_once(':');
    port.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

// Leaves out the login that a URL may contain.
impl fmt::Display for ForwardTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SyslogUdp(address) => write!(f, "syslog udp://{address}"),
            Self::SyslogUnix(path) => write!(f, "syslog unix:{}", path.display()),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Otlp(address) => {
                let url = reqwest::Url::parse(address).ok();
                let host = url.as_ref().and_then(|url| url.host_str());
                let port = url.as_ref().and_then(reqwest::Url::port_or_known_default);
                write!(
                    f,
                    "otlp {}:{}",
                    host.unwrap_or_default(),
                    port.unwrap_or_default()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_target_is_parsed() {
        let read = |json: &str| serde_json::from_str::<ForwardTarget>(json);
        for (json, expected) in [
            (r#""syslog""#, "syslog unix:/dev/log"),
            (r#"{ "syslog": "unix:/run/log" }"#, "syslog unix:/run/log"),
            (
                r#"{ "syslog": "udp://[::1]:514" }"#,
                "syslog udp://[::1]:514",
            ),
            (r#"{ "file": "/var/log/calls" }"#, "file /var/log/calls"),
            (
                r#"{ "otlp": "https://me:secret@logs.example" }"#,
                "otlp logs.example:443",
            ),
        ] {
            assert_eq!(read(json).unwrap().to_string(), expected);
        }
        for (json, problem) in [
            (r#""journald""#, "write \"syslog\", or"),
            (
                r#"{ "syslog": "tcp://a:1" }"#,
                "write udp://host:514 or unix:/dev/log",
            ),
            (r#"{ "syslog": "udp://a" }"#, "write udp://host:514"),
            (r#"{ "otlp": "a:4318" }"#, "write http://host:4318"),
            (
                r#"{ "file": "a", "otlp": "http://b" }"#,
                "write \"syslog\", or",
            ),
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(problem), "{json}: {error}");
        }
    }
}
