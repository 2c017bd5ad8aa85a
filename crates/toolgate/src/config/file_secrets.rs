//! The secrets of a configuration: which values are hidden, and whether others can read the file.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::Value;

use super::Config;

const GROUP_MAY_READ: u32 = 0o040;
const EVERYBODY_MAY_READ: u32 = 0o004;

impl Config {
    pub(crate) fn secrets(&self) -> Vec<String> {
        let tokens = self.serve.tokens.iter().map(|one| one.token.as_str());
        let keys_and_passwords = [
            Some(self.search.key.as_str()),
            password(&self.search.url),
            #[cfg(feature = "otlp")]
            password(&self.telemetry.otlp),
            Some(self.serve.token.as_str()),
            #[cfg(feature = "voice")]
            Some(self.mqtt.password.as_str()),
            #[cfg(feature = "voice")]
            password(&self.mqtt.url),
        ];
        // A server that isn't started can't leak anything.
        let servers = self
            .servers
            .iter()
            .filter(|server| !server.settings.disabled && server.settings.blocked.is_none());
        keys_and_passwords
            .into_iter()
            .flatten()
            .chain(tokens)
            .filter(|secret| !secret.is_empty())
            .map(str::to_owned)
            .chain(self.approvals.notify.secrets())
            .chain(self.model.secrets())
            .chain(servers.flat_map(|server| server.settings.secrets()))
            .chain(self.fetched.values_to_redact())
            .collect()
    }

    /// A warning if other users may read secrets that are written into the file.
    pub(crate) fn exposed_secret_warning(&self) -> Option<String> {
        let file = self.file()?;
        let found = std::fs::metadata(file).ok()?;
        let (mode, owner) = (found.permissions().mode(), found.uid());
        let own = rustix::process::geteuid().as_raw();
        let key = self.literal_secret()?;
        is_open_to_others(mode, owner != own).then(|| {
            let file = toolgate_core::text::escape(&file.to_string_lossy());
            format!("{file}: contains '{key}', and other users of this machine can read it; make it private with chmod 600, or write ${{VAR}}, ${{file:PATH}} or ${{keyring:NAME}} there")
        })
    }

    fn literal_secret(&self) -> Option<&'static str> {
        let is_literal = |value: &Value| {
            value
                .as_str()
                .is_some_and(|text| !text.is_empty() && !text.contains("${"))
        };
        let tokens = self.section("serve")["tokens"].as_array();
        let mut tokens = tokens.into_iter().flatten();
        let single_keys = [
            ("serve.token", &self.section("serve")["token"]),
            ("model.key", &self.section("model")["key"]),
            ("search.key", &self.section("search")["key"]),
            ("mqtt.password", &self.section("mqtt")["password"]),
        ];
        let mut servers = self.servers.iter();
        if let Some((key, _)) = single_keys.into_iter().find(|(_, value)| is_literal(value)) {
            Some(key)
        } else if tokens.any(|token| is_literal(&token["token"])) {
            Some("serve.tokens")
        } else {
            let is_credential =
                |name: &str| ["authorization", "x-api-key"].contains(&name.to_lowercase().as_str());
            let has_literal = |headers: &Value| {
                let headers = headers.as_object().into_iter().flatten();
                headers
                    .into_iter()
                    .any(|(name, value)| is_credential(name) && is_literal(value))
            };
            servers
                .any(|server| has_literal(&server.entry["headers"]))
                .then_some("headers")
        }
    }
}

fn password(url: &str) -> Option<&str> {
    let (login, _) = url.split_once("://")?.1.split_once('@')?;
    let is_login = !login.contains('/');
    is_login.then(|| {
        login
            .split_once(':')
            .map_or(login, |(_, password)| password)
    })
}

/// True if a file of this mode is open to too many users. A service that reads another user's file
/// needs group access to it.
fn is_open_to_others(mode: u32, is_of_another_user: bool) -> bool {
    let others = match is_of_another_user {
        true => EVERYBODY_MAY_READ,
        false => EVERYBODY_MAY_READ | GROUP_MAY_READ,
    };
    mode & others != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_access_is_fine_for_a_service() {
        for (mode, is_of_another_user, expected) in [
            (0o600, false, false),
            (0o640, false, true),
            (0o640, true, false),
            (0o644, true, true),
            (0o604, false, true),
        ] {
            assert_eq!(
                is_open_to_others(mode, is_of_another_user),
                expected,
                "{mode:o}"
            );
        }
    }
}
