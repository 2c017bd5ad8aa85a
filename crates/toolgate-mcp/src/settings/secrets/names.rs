//! Which variables, headers and options hold secrets, by what they are called.

/// One word of a name that says it.
const WORDS: [&str; 24] = [
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "key",
    "keys",
    "otp",
    "pass",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "pat",
    "pin",
    "psk",
    "pwd",
    "secret",
    "secrets",
    "signature",
    "token",
];
/// Within a word, where names are written together.
const PARTS: [&str; 10] = [
    "accesskey",
    "apikey",
    "apitoken",
    "accesstoken",
    "authtoken",
    "credential",
    "passphrase",
    "password",
    "privatekey",
    "secret",
];
/// Words for what people think up and type. It may look like anything, a path too.
const PASSWORDS: [&str; 9] = [
    "otp",
    "pass",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "pin",
    "psk",
    "pwd",
];
/// A name that begins so is a switch: `--no-auth`.
const SWITCHES: [&str; 5] = ["disable", "enable", "no", "skip", "without"];
/// Where a name ends so, it is about a secret and holds none: `API_KEY_FILE`, `AUTH_URL`, `TOKEN_TYPE`.
const ABOUT: [&str; 28] = [
    "algorithm",
    "dir",
    "enabled",
    "endpoint",
    "expiry",
    "file",
    "folder",
    "header",
    "host",
    "id",
    "issuer",
    "length",
    "limit",
    "method",
    "mode",
    "name",
    "path",
    "port",
    "prefix",
    "provider",
    "sock",
    "socket",
    "timeout",
    "ttl",
    "type",
    "uri",
    "url",
    "user",
];

/// True if a name says that its value is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let words = words(name);
    let says = |word: &String| {
        WORDS.contains(&word.as_str())
            || word.ends_with("token")
            || PARTS.iter().any(|part| word.contains(part))
    };
    let is_one_of = |word: Option<&String>, list: &[&str]| {
        word.is_some_and(|word| list.contains(&word.as_str()))
    };
    // Vault's half of a login, unlike `CLIENT_ID` and `ACCESS_KEY_ID`.
    let is_secret_id = words.ends_with(&["secret".to_owned(), "id".to_owned()]);
    let is_about = is_one_of(words.last(), &ABOUT) && !is_secret_id;
    let is_switch = is_one_of(words.first(), &SWITCHES);
    !is_about && !is_switch && words.iter().any(says)
}

/// True if a name says that its value is a password rather than a key.
pub(super) fn is_password(name: &str) -> bool {
    let words = words(name);
    let mut words = words.iter();
    words.any(|word| PASSWORDS.contains(&word.as_str()) || word.contains("password"))
}

/// True if a name says that there are several secrets: `API_KEYS`.
pub(super) fn is_plural(name: &str) -> bool {
    let words = words(name);
    words.last().is_some_and(|word| word.ends_with('s'))
}

/// `X-Api-Key`, `x_api_key` and `xApiKey` are the same words.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars().take(200) {
        let starts = !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
        if starts && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_is_a_secret() {
        for name in [
            "FIRECRAWL_API_KEY",
            "GITHUB_TOKEN",
            "githubToken",
            "X-Api-Key",
            "APIKEY",
            "OPENAI_KEY",
            "DB_PASS",
            "PGPASSWORD",
            "Authorization",
            "Proxy-Authorization",
            "Cookie",
            "AWS_SECRET_ACCESS_KEY",
            "SLACK_BOT_TOKEN",
            "--api-key",
            "GH_PAT",
            "CLIENT_SECRET",
            "clientSecret",
            "MQTT_PASSWORD",
            "SIGNING_KEY",
            "ALARM_PIN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "MYSECRET",
            "WIFI_PSK",
            "NODE_AUTH_TOKEN",
            "VAULT_SECRET_ID",
            "API_KEYS",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "NODE_ENV",
            "LOG_LEVEL",
            "KEYBOARD",
            "MONKEY",
            "AUTHOR",
            "MAX_TOKENS",
            "TOKENIZERS_PARALLELISM",
            "PATH",
            "COMPASS",
            "API_KEY_FILE",
            "AUTH_URL",
            "SSH_AUTH_SOCK",
            "TOKEN_TYPE",
            "CLIENT_ID",
            "MQTT_BROKER_URL",
            "Accept",
            "X-Client",
            "",
            "DATABASE_URL",
            "PINNED",
            "SHIPPING_ADDRESS",
            "PASSENGERS",
            "AUTH_PROVIDER",
            "--no-auth",
            "DISABLE_AUTH",
            "AWS_ACCESS_KEY_ID",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
