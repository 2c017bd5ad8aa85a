//! The settings, from flags or from the environment variables that users of zwave-js-ui know.

use std::path::PathBuf;

use clap::Args;
use toolgate_mqtt::{MqttClientId, MqttClientSettings};
use tracing::level_filters::LevelFilter;
use zwave::HouseSettings;

/// The help text below the flags, for a program of this name.
pub fn help(program: &str) -> String {
    format!(
        "\
Variables, each used unless its flag is given:
  MQTT_BROKER_URL    mqtt://localhost:1883 unless set; mqtts:// for TLS
  MQTT_USERNAME      and MQTT_PASSWORD, which has no flag: everybody on the machine can read flags
  MQTT_CA_FILE       certificates (PEM) to trust instead of the system's
  MQTT_TOPIC_PREFIX  as in the MQTT settings of zwave-js-ui; zwave unless set
  ZWAVE_GATEWAY      the name of the gateway, if there are several
  ZWAVE_ALLOW_LOCKS  1 to offer control_lock
  LOG_LEVEL          error, warn, info, debug or trace

Examples:
  {program}
  {program} --broker mqtt://192.168.1.10
  MQTT_USERNAME=house MQTT_PASSWORD=… {program} --broker mqtts://broker.example
  {program} --prefix home/zwave

An MCP client starts this program and talks to it on stdin and stdout. The program starts even
without a broker or a gateway, and its tools then say what is missing."
    )
}

/// The flags of the server: how to reach the broker and the gateway, and what its tools may do.
#[derive(Debug, Clone, Default, Args)]
pub struct ServerOptions {
    /// The MQTT broker that zwave-js-ui uses [default: $MQTT_BROKER_URL, mqtt://localhost:1883]
    #[arg(long, value_name = "URL")]
    pub broker: Option<String>,
    /// The user name at the broker [default: $MQTT_USERNAME]; the password is $MQTT_PASSWORD
    #[arg(long, value_name = "NAME")]
    pub username: Option<String>,
    /// Certificates to trust with mqtts:// [default: $MQTT_CA_FILE, the system's]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// The topic prefix of zwave-js-ui [default: $MQTT_TOPIC_PREFIX, zwave]
    #[arg(long, value_name = "TOPIC")]
    pub prefix: Option<String>,
    /// The name of the gateway [default: $ZWAVE_GATEWAY, detected]
    #[arg(long, value_name = "NAME")]
    pub gateway: Option<String>,
    /// Offer the tool control_lock, which moves locks [default: $ZWAVE_ALLOW_LOCKS]
    #[arg(long)]
    pub allow_locks: bool,
    /// How much to log on stderr [default: $LOG_LEVEL, info]
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    pub log: Option<LevelFilter>,
}

pub(crate) struct ResolvedSettings {
    // An error does not stop the server: its tools report the reason.
    pub(crate) broker: Result<MqttClientSettings, String>,
    pub(crate) house: HouseSettings,
    pub(crate) locks: bool,
    pub(crate) warnings: Vec<String>,
}

impl ServerOptions {
    pub fn log_level(&self) -> Option<LevelFilter> {
        self.log
            .or_else(|| parse_level(&environment_variable("LOG_LEVEL")?).ok())
    }

    pub(crate) fn resolve(&self, variable: impl Fn(&str) -> Option<String>) -> ResolvedSettings {
        // An empty variable counts as unset, because many launchers can't leave one out.
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let flag_or_variable =
            |flag: &Option<String>, name| flag.clone().or_else(|| variable(name));
        let mut warnings = Vec::new();
        let locks = self.allow_locks
            || variable("ZWAVE_ALLOW_LOCKS").is_some_and(|value| {
                parse_bool(&value).unwrap_or_else(|| {
                    warnings
                        .push("ZWAVE_ALLOW_LOCKS is neither 1 nor 0: locks stay off".to_owned());
                    false
                })
            });
        let prefix = flag_or_variable(&self.prefix, "MQTT_TOPIC_PREFIX")
            .unwrap_or_else(|| "zwave".to_owned());
        let prefix = prefix.trim().trim_matches('/').to_owned();
        let url = flag_or_variable(&self.broker, "MQTT_BROKER_URL");
        let url = url.as_deref().unwrap_or("mqtt://localhost:1883");
        let broker = check_prefix(&prefix).and_then(|()| {
            let mut broker = MqttClientSettings::new(url).map_err(|error| error.to_string())?;
            broker.username = flag_or_variable(&self.username, "MQTT_USERNAME").or(broker.username);
            broker.password = variable("MQTT_PASSWORD").or(broker.password);
            broker.ca_file = self
                .ca_file
                .clone()
                .or_else(|| variable("MQTT_CA_FILE").map(PathBuf::from));
            broker.client_id = MqttClientId::Prefix("zwave-mcp-server".to_owned());
            Ok(broker)
        });
        if let Ok(broker) = &broker
            && locks
        {
            warnings.extend(lock_warning(broker));
        }
        let gateway =
            flag_or_variable(&self.gateway, "ZWAVE_GATEWAY").map(|name| name.trim().to_owned());
        ResolvedSettings {
            broker,
            house: HouseSettings {
                prefix,
                gateway,
                ..HouseSettings::default()
            },
            locks,
            warnings,
        }
    }
}

pub(crate) fn environment_variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Warns if others could move the locks too. Anybody who can reach the broker can, so it should
/// require a password, sent over TLS unless the broker is on this machine.
fn lock_warning(broker: &MqttClientSettings) -> Option<String> {
    let address = broker.address();
    let is_here = ["localhost", "127.", "[::1]"];
    let is_here = is_here
        .iter()
        .any(|here| address.starts_with(&format!("mqtt://{here}")));
    let missing = match (
        broker.password.is_some(),
        address.starts_with("mqtts://") || is_here,
    ) {
        (true, true) => return None,
        (false, true) => "without a password",
        (true, false) => "without TLS",
        (false, false) => "without a password and without TLS",
    };
    Some(format!(
        "anyone who can reach the broker {address} {missing} can move the locks; docs/zwave.md shows how to secure it"
    ))
}

fn check_prefix(prefix: &str) -> Result<(), String> {
    if prefix.is_empty() || prefix.contains(['+', '#', '\0']) {
        return Err(
            "The MQTT topic prefix (MQTT_TOPIC_PREFIX) is not a valid topic. Use the one from the MQTT settings of zwave-js-ui, such as \
             zwave."
                .to_owned(),
        );
    }
    Ok(())
}

fn parse_level(text: &str) -> Result<LevelFilter, String> {
    let known = ["off", "error", "warn", "info", "debug", "trace"];
    let text = text.trim().to_lowercase();
    let is_known = known.contains(&text.as_str());
    let wrong = || format!("must be one of {}", known.join(", "));
    if is_known {
        text.parse().map_err(|_| wrong())
    } else {
        Err(wrong())
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text.trim().to_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(options: &ServerOptions, variables: &[(&str, &str)]) -> ResolvedSettings {
        options.resolve(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn every_setting_has_a_default() {
        for variables in [
            &[][..],
            &[
                ("MQTT_BROKER_URL", ""),
                ("MQTT_TOPIC_PREFIX", " "),
                ("ZWAVE_ALLOW_LOCKS", ""),
            ],
        ] {
            let chosen = chosen(&ServerOptions::default(), variables);
            assert_eq!(chosen.broker.unwrap().address(), "mqtt://localhost:1883");
            assert_eq!(chosen.house.prefix, "zwave");
            assert_eq!(chosen.house.gateway, None);
            assert!(!chosen.locks && chosen.warnings.is_empty());
        }
    }

    #[test]
    fn variables_are_used_and_flags_win() {
        let variables = [
            ("MQTT_BROKER_URL", "mqtt://one:2000"),
            ("MQTT_USERNAME", "house"),
            ("MQTT_PASSWORD", "sesame"),
            ("MQTT_CA_FILE", "ca.pem"),
            ("MQTT_TOPIC_PREFIX", "home/zwave/"),
            ("ZWAVE_GATEWAY", "attic "),
        ];
        let resolved = chosen(&ServerOptions::default(), &variables);
        let broker = resolved.broker.unwrap();
        assert_eq!(broker.address(), "mqtt://one:2000");
        assert_eq!(broker.username.as_deref(), Some("house"));
        assert_eq!(broker.password.as_deref(), Some("sesame"));
        assert_eq!(broker.ca_file, Some(PathBuf::from("ca.pem")));
        assert_eq!(resolved.house.prefix, "home/zwave");
        assert_eq!(resolved.house.gateway.as_deref(), Some("attic"));
        let options = ServerOptions {
            broker: Some("mqtts://two".to_owned()),
            username: Some("guest".to_owned()),
            gateway: Some("cellar".to_owned()),
            ..ServerOptions::default()
        };
        let resolved = chosen(&options, &variables);
        let broker = resolved.broker.unwrap();
        assert_eq!(broker.address(), "mqtts://two:8883");
        assert_eq!(broker.username.as_deref(), Some("guest"));
        assert_eq!(resolved.house.gateway.as_deref(), Some("cellar"));
    }

    #[test]
    fn locks_with_an_open_broker_are_warned_of() {
        let resolved = |url: &str, password: &str, locks: &str| {
            let variables = [
                ("MQTT_BROKER_URL", url),
                ("MQTT_PASSWORD", password),
                ("ZWAVE_ALLOW_LOCKS", locks),
            ];
            chosen(&ServerOptions::default(), &variables)
                .warnings
                .join(" ")
        };
        for (url, password, missing) in [
            (
                "mqtt://broker.lan",
                "",
                " without a password and without TLS can",
            ),
            ("mqtt://broker.lan", "sesame", " without TLS can"),
            ("mqtts://broker.lan", "", " without a password can"),
            ("mqtt://localhost", "", " without a password can"),
        ] {
            assert!(resolved(url, password, "1").contains(missing), "{url}");
            assert_eq!(resolved(url, password, "0"), "", "{url}");
        }
        for url in [
            "mqtts://broker.lan",
            "mqtt://127.0.0.1",
            "mqtt://[::1]:1883",
        ] {
            assert_eq!(resolved(url, "sesame", "1"), "", "{url}");
        }
    }

    #[test]
    fn locks_are_off_unless_a_clear_yes_allows_them() {
        for (value, locks, warnings) in [
            ("1", true, 0),
            ("true", true, 0),
            ("Yes", true, 0),
            ("0", false, 0),
            ("false", false, 0),
            ("off", false, 0),
            ("maybe", false, 1),
        ] {
            let variables = [("ZWAVE_ALLOW_LOCKS", value), ("MQTT_PASSWORD", "sesame")];
            let chosen = chosen(&ServerOptions::default(), &variables);
            assert_eq!(
                (chosen.locks, chosen.warnings.len()),
                (locks, warnings),
                "{value}"
            );
        }
    }

    #[test]
    fn errors_do_not_quote_invalid_values() {
        for (name, value) in [
            ("MQTT_BROKER_URL", "http://user:sesame@host"),
            ("MQTT_TOPIC_PREFIX", "zwave/#"),
            ("MQTT_TOPIC_PREFIX", "/"),
        ] {
            let reason = chosen(&ServerOptions::default(), &[(name, value)])
                .broker
                .unwrap_err();
            assert!(
                !reason.contains("sesame") && reason.contains("zwave") | reason.contains("mqtt://"),
                "{reason}"
            );
        }
    }

    #[test]
    fn log_levels_are_parsed_from_words() {
        assert_eq!(parse_level("DEBUG"), Ok(LevelFilter::DEBUG));
        assert!(parse_level("5").is_err() && parse_level("loud").is_err());
    }
}
