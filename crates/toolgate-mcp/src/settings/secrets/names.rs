//! Decides by name whether a variable, header or option holds a secret.

// Any of these as a word of the name makes it a secret.
const SECRET_WORDS: &str = "apikey auth authorization bearer cookie credential credentials jwt key keys \
    otp pass passcode passphrase passwd password pat pin psk pwd secret secrets signature token";
// These are found inside a word, for names written without separators.
const SECRET_PARTS: &str = "accesskey apikey apitoken accesstoken authtoken credential passphrase \
    password privatekey secret";
// People choose these, so the value may look like anything, even a path.
const PASSWORDS: &str = "otp pass passcode passphrase passwd password pin psk pwd";
// A name that begins with one of these is a switch, such as `--no-auth`.
const SWITCHES: &str = "disable enable no skip without";
// A name that ends with one of these describes a secret but doesn't
// hold it: `API_KEY_FILE`, `AUTH_URL`.
const DESCRIPTIONS: &str = "algorithm dir enabled endpoint expiry file folder header host id issuer \
    length limit method mode name path port prefix provider sock socket timeout ttl type uri url \
    user";

fn is_in(list: &str, word: &str) -> bool {
    list.split(' ').any(|item| item == word)
}

pub(super) fn is_secret(name: &str) -> bool {
    let words = words(name);
    let is_secret_word = |word: &String| {
        is_in(SECRET_WORDS, word)
            || word.ends_with("token")
            || SECRET_PARTS.split(' ').any(|part| word.contains(part))
    };
    // `SECRET_ID` is part of a login to Vault and is secret, unlike `CLIENT_ID` and
    // `ACCESS_KEY_ID`.
    let is_secret_id = words.ends_with(&["secret".to_owned(), "id".to_owned()]);
    let is_description =
        words.last().is_some_and(|word| is_in(DESCRIPTIONS, word)) && !is_secret_id;
    let is_switch = words.first().is_some_and(|word| is_in(SWITCHES, word));
    !is_description && !is_switch && words.iter().any(is_secret_word)
}

pub(super) fn is_password(name: &str) -> bool {
    let is_password = |word: &String| is_in(PASSWORDS, word) || word.contains("password");
    words(name).iter().any(is_password)
}

pub(super) fn is_plural(name: &str) -> bool {
    let words = words(name);
    words.last().is_some_and(|word| word.ends_with('s'))
}

/// `X-Api-Key`, `x_api_key` and `xApiKey` split into the same words.
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
    fn secrets_are_recognized_by_name() {
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
