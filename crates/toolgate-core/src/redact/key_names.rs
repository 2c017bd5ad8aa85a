//! Decides by a key's name whether its value is a secret.

use serde_json::Value;

// These match anywhere in a name.
const WORDS: [SecretWord; 14] = [
    SecretWord::new("accesskey"),
    SecretWord::new("bearer"),
    SecretWord::new("passcode"),
    SecretWord::new("pwd"),
    SecretWord::new("sshkey"),
    SecretWord::new("password"),
    SecretWord::new("passwd"),
    SecretWord::new("passphrase"),
    SecretWord::new("secret"),
    SecretWord::new("apikey"),
    SecretWord::new("authorization"),
    SecretWord::new("credential"),
    SecretWord::new("privatekey"),
    SecretWord::new("cookie"),
];
const TOKEN: SecretWord = SecretWord::new("token");
// These are too common inside other words, so they must be the whole name.
const WHOLE_NAMES: [&str; 8] = [
    "pin", "pincode", "usercode", "otp", "auth", "key", "pass", "session",
];

// A number under `tokens` is a count, not a secret.
pub(super) fn is_secret(name: &str, value: &Value) -> bool {
    let mut plain = [0_u8; 64];
    let mut length = 0;
    for byte in name.bytes().filter(u8::is_ascii_alphanumeric) {
        if length == plain.len() {
            break;
        }
        plain[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    let plain = str::from_utf8(&plain[..length]).unwrap_or_default();
    let letters = letter_mask(plain);
    let has = |word: &SecretWord| word.letters & !letters == 0 && plain.contains(word.text);
    match value {
        Value::Null | Value::Bool(_) => false,
        _ if WHOLE_NAMES.contains(&plain) || WORDS.iter().any(has) => true,
        value => has(&TOKEN) && !value.is_number(),
    }
}

// These words are searched for in every key of every call. Most keys lack one of a word's letters,
// which comparing bit masks shows faster than a search.
struct SecretWord {
    text: &'static str,
    letters: u32,
}

impl SecretWord {
    const fn new(text: &'static str) -> Self {
        let letters = letter_mask(text);
        Self { text, letters }
    }
}

const fn letter_mask(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let (mut letters, mut at) = (0, 0);
    while at < bytes.len() {
        if bytes[at].is_ascii_lowercase() {
            letters |= 1 << (bytes[at] - b'a');
        }
        at += 1;
    }
    letters
}
