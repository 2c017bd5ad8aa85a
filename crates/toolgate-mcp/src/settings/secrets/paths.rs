//! Recognizes values that are paths of secrets. They aren't hidden, because a person needs them to
//! find out why a server doesn't start.

// Usual extensions of files that hold secrets.
const EXTENSIONS: &str = "cer conf crt env ini jks json key p12 pem pfx toml txt yaml";

/// True for absolute paths and for files by extension, but not for base64 that happens to
/// begin with a slash.
pub(super) fn is_path(text: &str) -> bool {
    let mut starts = ["/", "~/", "./", "../"].iter();
    let has_start = starts.any(|start| text.starts_with(start));
    let parts = text.split('/').filter(|part| !part.is_empty()).count();
    let extension = text.rsplit_once('.').map(|(_, extension)| extension);
    let is_file = extension.is_some_and(|it| EXTENSIONS.split(' ').any(|known| known == it));
    let is_plain = |c: char| c.is_alphanumeric() || "/._-~@".contains(c);
    let looks_like_path = (has_start && parts > 1) || is_file;
    looks_like_path
        && text.chars().all(is_plain)
        && text
            .split(|c: char| !c.is_alphanumeric())
            .all(is_part_of_name)
}

// False for a mix of upper case, lower case and digits, which is typical of keys.
fn is_part_of_name(word: &str) -> bool {
    let has = |which: fn(char) -> bool| word.chars().any(which);
    !(has(char::is_uppercase) && has(char::is_lowercase) && has(char::is_numeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_distinguished_from_keys() {
        for text in [
            "/x/sa.json",
            "/etc/k.pem",
            "/run/secrets/token",
            "~/.ssh/id_ed25519",
            "./key",
            "certs/client.key",
            "key.pem",
            "/Users/ada/MyProject/key.json",
        ] {
            assert!(is_path(text), "{text}");
        }
        for text in [
            "/hunter2",
            "/wJalrXUtn3FEMI/K7MDENG9/bPxRfiCY",
            "/abc+def/ghi=",
            "abc/def",
            "s3cret",
            "two words/and.pem",
            "",
        ] {
            assert!(!is_path(text), "{text}");
        }
    }
}
