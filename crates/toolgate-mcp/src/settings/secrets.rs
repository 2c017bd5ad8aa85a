//! Finds the secrets among a server's settings, by name or by shape. Other values stay visible,
//! because a person needs them to understand a server's stderr.

mod headers;
mod names;
mod paths;
mod shape;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{ServerConnection, ServerSettings};

// Shorter values occur in any text by chance. Hiding them would hide the text, not the secret.
const MIN_BYTES: usize = 4;
// Values that are not secrets, even if the variable has the name of one.
const ORDINARY_WORDS: [&str; 8] = [
    "true", "false", "none", "null", "auto", "required", "optional", "disabled",
];
// Separates the items of a list of secrets.
const SEPARATORS: [char; 2] = [',', ';'];
// A password may contain a comma, so shorter parts may be ordinary words. For names in the plural,
// which are lists, `MIN_BYTES` applies.
const MIN_PART_LEN: usize = 8;
// How deep JSON inside values is searched.
const MAX_DEPTH: usize = 16;

impl ServerSettings {
    /// Values that must not appear in logs, errors or on screen: variables, headers and options
    /// with telling names, logins in URLs, and anything that looks like a key.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = SecretCollector::default();
        match &self.connection {
            ServerConnection::Stdio(program) => {
                for (name, value) in &program.env {
                    secrets.add_if_named(name, value, MAX_DEPTH);
                }
                secrets.add_from_options(&program.args);
            }
            ServerConnection::Http { url, headers } => {
                for (name, value) in &headers.0 {
                    secrets.add_if_named(name, value, MAX_DEPTH);
                }
                secrets.add_from_text(url, MAX_DEPTH);
            }
        }
        secrets.0
    }
}

#[derive(Default)]
struct SecretCollector(Vec<String>);

impl SecretCollector {
    fn add(&mut self, secret: &str) {
        let is_word = ORDINARY_WORDS
            .iter()
            .any(|word| secret.eq_ignore_ascii_case(word));
        if secret.len() >= MIN_BYTES && !is_word && !self.0.iter().any(|known| known == secret) {
            self.0.push(secret.to_owned());
        }
    }

    fn add_if_named(&mut self, name: &str, value: &str, deeper: usize) {
        if names::is_secret(name) {
            self.add_named(name, value);
        }
        self.add_from_text(value, deeper);
    }

    /// Adds a value whose name means a secret, unless it is the path of a secret.
    fn add_named(&mut self, name: &str, value: &str) {
        let is_path = |text: &str| paths::is_path(text) && !names::is_password(name);
        let parts = || value.split(SEPARATORS).map(str::trim);
        if parts().all(is_path) {
            return;
        }
        self.add(value);
        // Servers print multi-line secrets line by line.
        let lines = value.lines().map(str::trim);
        lines
            .filter(|line| line.len() >= 8)
            .for_each(|line| self.add(line));
        let shortest = match names::is_plural(name) {
            true => MIN_BYTES,
            false => MIN_PART_LEN,
        };
        parts()
            .filter(|part| part.len() >= shortest && !is_path(part))
            .for_each(|part| self.add(part));
    }

    // Handles `--api-key x` and `--api-key=x`.
    fn add_from_options(&mut self, arguments: &[String]) {
        let mut before = "";
        for argument in arguments {
            let is_option = argument.starts_with('-');
            let option = is_option.then(|| argument.trim_start_matches('-'));
            match option.map(|option| option.split_once('=').unwrap_or((option, ""))) {
                Some((name, value)) => {
                    self.add_if_named(name, value, MAX_DEPTH);
                    before = if value.is_empty() { name } else { "" };
                }
                None => {
                    self.add_if_named(before, argument, MAX_DEPTH);
                    before = "";
                }
            }
        }
    }

    fn add_from_text(&mut self, value: &str, deeper: usize) {
        self.add_from_authorization(value);
        match serde_json::from_str(value) {
            Ok(json @ (Value::Object(_) | Value::Array(_))) => {
                return self.add_from_json(&json, deeper);
            }
            _ if value.contains("PRIVATE KEY-----") => {
                value.lines().for_each(|line| self.add(line.trim()));
            }
            _ => {}
        }
        if let Ok(url) = reqwest::Url::parse(value)
            && url.has_host()
        {
            self.add_from_url(&url);
        }
        // Connection strings such as `Server=db;User=sa;Password=x` and `host=db
        // password=x`, and URL queries.
        for pair in value.split([';', '&', '?', ' ', '\n']) {
            if let Some((name, value)) = pair.split_once('=')
                && names::is_secret(name)
            {
                self.add_named(name, value);
            }
        }
        // Headers such as `Authorization: Bearer x` in an option or a variable.
        if deeper > 0 {
            for (name, value) in value.lines().flat_map(headers::parse) {
                self.add_if_named(name, value, deeper - 1);
            }
        }
        shape::find_secrets(value).for_each(|secret| self.add(secret));
    }

    fn add_from_json(&mut self, json: &Value, deeper: usize) {
        match json {
            _ if deeper == 0 => {}
            Value::Object(object) => {
                for (name, value) in object {
                    match value {
                        Value::String(text) => self.add_if_named(name, text, deeper - 1),
                        Value::Array(list) if names::is_secret(name) => list
                            .iter()
                            .filter_map(Value::as_str)
                            .for_each(|text| self.add_if_named(name, text, deeper - 1)),
                        other => self.add_from_json(other, deeper - 1),
                    }
                }
            }
            Value::Array(list) => list
                .iter()
                .for_each(|value| self.add_from_json(value, deeper - 1)),
            Value::String(text) => self.add_from_text(text, deeper - 1),
            _ => {}
        }
    }

    // The token of `Bearer abc` may also appear alone, and so may the password of `Basic`.
    fn add_from_authorization(&mut self, value: &str) {
        let Some((scheme, token)) = value.split_once(' ') else {
            return;
        };
        if !["bearer", "basic", "token", "digest"].contains(&scheme.to_ascii_lowercase().as_str()) {
            return;
        }
        self.add(value);
        self.add(token.trim());
        let login = BASE64_STANDARD.decode(token.trim()).unwrap_or_default();
        if let Ok(login) = str::from_utf8(&login)
            && let Some((_, password)) = login.split_once(':')
        {
            self.add(password);
        }
    }

    // Adds the password both encoded and decoded. A long login without a password is a token.
    fn add_from_url(&mut self, url: &reqwest::Url) {
        let secret = match (url.username(), url.password()) {
            (_, Some(password)) => password,
            (token, None) if token.len() >= 16 => token,
            _ => return,
        };
        self.add(secret);
        self.add(&percent_decode_str(secret).decode_utf8_lossy());
    }
}

#[cfg(test)]
mod tests;
