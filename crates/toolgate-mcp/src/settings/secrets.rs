//! What of a server's settings must never be shown: what is a secret by its name or its shape, and nothing else. The rest is what
//! a person looks for in a server's stderr.

mod headers;
mod names;
mod paths;
mod shape;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::Value;

use super::{Connection, ServerSettings};

/// Shorter values stand in any text by chance: to hide them hides the text, and not them.
const SHORTEST: usize = 4;
/// What stands in variables that are called like secrets and hold none.
const WORDS: [&str; 8] = [
    "true", "false", "none", "null", "auto", "required", "optional", "disabled",
];
/// Where a list of secrets is divided.
const SEPARATORS: [char; 2] = [',', ';'];
/// A password may have a comma in it. Shorter parts of it are ordinary words, unless the name says that there are several.
const SHORTEST_PART: usize = 8;
/// How deep JSON in a value is looked through.
const DEEPEST: usize = 16;

impl ServerSettings {
    /// Values that no log, error or screen may show: those of variables, headers and options with a name that says so, logins in
    /// addresses, and whatever looks like a key.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = Secrets::default();
        match &self.connection {
            Connection::Stdio(program) => {
                for (name, value) in &program.env {
                    secrets.named(name, value, DEEPEST);
                }
                secrets.options(&program.args);
            }
            Connection::Http { url, headers } => {
                for (name, value) in &headers.0 {
                    secrets.named(name, value, DEEPEST);
                }
                secrets.inside(url, DEEPEST);
            }
        }
        secrets.0
    }
}

#[derive(Default)]
struct Secrets(Vec<String>);

impl Secrets {
    fn add(&mut self, secret: &str) {
        let is_word = WORDS.iter().any(|word| secret.eq_ignore_ascii_case(word));
        if secret.len() >= SHORTEST && !is_word && !self.0.iter().any(|known| known == secret) {
            self.0.push(secret.to_owned());
        }
    }

    fn named(&mut self, name: &str, value: &str, deeper: usize) {
        if names::is_secret(name) {
            self.add_named(name, value);
        }
        self.inside(value, deeper);
    }

    /// The value of something whose name says that it is a secret, unless it is where the secret lies.
    fn add_named(&mut self, name: &str, value: &str) {
        let is_path = |text: &str| paths::is_path(text) && !names::is_password(name);
        let parts = || value.split(SEPARATORS).map(str::trim);
        if parts().all(is_path) {
            return;
        }
        self.add(value);
        // A server prints it line by line.
        value
            .lines()
            .map(str::trim)
            .filter(|line| line.len() >= 8)
            .for_each(|line| self.add(line));
        let shortest = match names::is_plural(name) {
            true => SHORTEST,
            false => SHORTEST_PART,
        };
        parts()
            .filter(|part| part.len() >= shortest && !is_path(part))
            .for_each(|part| self.add(part));
    }

    /// `--api-key x` and `--api-key=x`.
    fn options(&mut self, arguments: &[String]) {
        let mut before = "";
        for argument in arguments {
            let option = argument
                .strip_prefix('-')
                .map(|option| option.trim_start_matches('-'));
            match option.map(|option| option.split_once('=').unwrap_or((option, ""))) {
                Some((name, value)) => {
                    self.named(name, value, DEEPEST);
                    before = if value.is_empty() { name } else { "" };
                }
                None => {
                    self.named(before, argument, DEEPEST);
                    before = "";
                }
            }
        }
    }

    /// What a value holds that is a secret on its own.
    fn inside(&mut self, value: &str, deeper: usize) {
        self.scheme(value);
        match serde_json::from_str(value) {
            Ok(json @ (Value::Object(_) | Value::Array(_))) => return self.json(&json, deeper),
            _ if value.contains("PRIVATE KEY-----") => {
                value.lines().for_each(|line| self.add(line.trim()));
            }
            _ => {}
        }
        if let Ok(url) = reqwest::Url::parse(value)
            && url.has_host()
        {
            self.address(&url);
        }
        // `Server=db;User=sa;Password=x`, `host=db password=x`, the query of an address.
        for pair in value.split([';', '&', '?', ' ', '\n']) {
            if let Some((name, value)) = pair
                .split_once('=')
                .filter(|(name, _)| names::is_secret(name))
            {
                self.add_named(name, value);
            }
        }
        // `Authorization: Bearer x`, as an option or a variable that holds headers.
        if deeper > 0 {
            for (name, value) in value.lines().flat_map(headers::parse) {
                self.named(name, value, deeper - 1);
            }
        }
        shape::secrets(value).for_each(|secret| self.add(secret));
    }

    fn json(&mut self, json: &Value, deeper: usize) {
        match json {
            _ if deeper == 0 => {}
            Value::Object(object) => {
                for (name, value) in object {
                    match value {
                        Value::String(text) => self.named(name, text, deeper - 1),
                        Value::Array(list) if names::is_secret(name) => list
                            .iter()
                            .filter_map(Value::as_str)
                            .for_each(|text| self.named(name, text, deeper - 1)),
                        other => self.json(other, deeper - 1),
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.json(value, deeper - 1)),
            Value::String(text) => self.inside(text, deeper - 1),
            _ => {}
        }
    }

    /// `Bearer abc`: the token also turns up alone. Of `Basic` so does the password.
    fn scheme(&mut self, value: &str) {
        let Some((scheme, token)) = value.split_once(' ') else {
            return;
        };
        if !["bearer", "basic", "token", "digest"].contains(&scheme.to_ascii_lowercase().as_str()) {
            return;
        }
        self.add(value);
        self.add(token.trim());
        let login = BASE64_STANDARD
            .decode(token.trim())
            .ok()
            .and_then(|login| String::from_utf8(login).ok());
        if let Some((_, password)) = login.as_deref().and_then(|login| login.split_once(':')) {
            self.add(password);
        }
    }

    /// The password of an address, as it stands there and as it is meant. A login without one is a token.
    fn address(&mut self, url: &reqwest::Url) {
        let secret = match (url.username(), url.password()) {
            (_, Some(password)) => password,
            (token, None) if token.len() >= 16 => token,
            _ => return,
        };
        self.add(secret);
        self.add(&percent_decoded(secret));
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
