//! Names of servers that can be spoken.

use toolgate_core::text::escape;

/// Most people have one server for their home, and don't call it by its name.
pub(super) fn spoken_names<'a>(
    names: impl Iterator<Item = &'a String>,
    homes: &[String],
) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    for name in names {
        let spoken = match homes.contains(name) {
            true => "the smart home".to_owned(),
            false => format!("the server {}", escape(name).replace(['_', '-'], " ")),
        };
        if !words.contains(&spoken) {
            words.push(spoken);
        }
    }
    let last = words.pop()?;
    Some(match words.is_empty() {
        true => last,
        false => format!("{} and {last}", words.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_names_can_be_spoken() {
        let homes = ["zwave", "upstairs"].map(str::to_owned);
        for (names, expected) in [
            (&[][..], None),
            (&["zwave"], Some("the smart home")),
            (&["my_files"], Some("the server my files")),
            (
                &["zwave", "files", "upstairs", "mail"],
                Some("the smart home, the server files and the server mail"),
            ),
        ] {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(spoken_names(names.iter(), &homes).as_deref(), expected);
        }
    }
}
