//! Which keys have values that are nobody's business.

use serde_json::Value;

/// Anywhere in a name.
const WORDS: [Word; 14] = [
    Word::new("accesskey"),
    Word::new("bearer"),
    Word::new("passcode"),
    Word::new("pwd"),
    Word::new("sshkey"),
    Word::new("password"),
    Word::new("passwd"),
    Word::new("passphrase"),
    Word::new("secret"),
    Word::new("apikey"),
    Word::new("authorization"),
    Word::new("credential"),
    Word::new("privatekey"),
    Word::new("cookie"),
];
const TOKEN: Word = Word::new("token");
/// As the whole name.
const WHOLE: [&str; 8] = [
    "pin", "pincode", "usercode", "otp", "auth", "key", "pass", "session",
];

/// True if the name of a key says that its value is a secret. A count of tokens is not a token.
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
    let letters = letters(plain);
    let has = |word: &Word| word.letters & !letters == 0 && plain.contains(word.text);
    match value {
        Value::Null | Value::Bool(_) => false,
        _ if WHOLE.contains(&plain) || WORDS.iter().any(has) => true,
        value => has(&TOKEN) && !value.is_number(),
    }
}

/// A word that is looked for in the names of all keys of all calls: most lack one of its letters, which is quickly seen.
struct Word {
    text: &'static str,
    letters: u32,
}

impl Word {
    const fn new(text: &'static str) -> Self {
        let letters = letters(text);
        Self { text, letters }
    }
}

/// A bit for each letter.
const fn letters(text: &str) -> u32 {
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
