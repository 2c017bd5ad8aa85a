//! Servers by names that can be spoken.

use toolgate_core::escape;
use toolgate_mcp::{Connection, ServerSettings};

/// True if it is the one for the house, as far as can be seen of a server whose tools are not there: by its name or its program.
pub(super) fn is_house(settings: &ServerSettings) -> bool {
    let names_it = |word: &str| {
        let word = word.to_lowercase();
        word.contains("zwave") || word.contains("z-wave")
    };
    let is_program = |word: &String| {
        let file = word.rsplit('/').next().unwrap_or(word);
        names_it(file) && file.to_lowercase().contains("mcp")
    };
    let by_program = match &settings.connection {
        Connection::Stdio(program) => {
            let mut words = std::iter::once(&program.command).chain(&program.args);
            words.any(is_program)
        }
        Connection::Http { .. } => false,
    };
    names_it(&settings.name) || by_program
}

/// Servers by names that can be spoken. Most people who talk to their house have one for it, and call it otherwise.
pub(super) fn spoken<'a>(
    names: impl Iterator<Item = &'a String>,
    houses: &[String],
) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    for name in names {
        let spoken = match houses.contains(name) {
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
    use toolgate_mcp::Program;

    use super::*;

    #[test]
    fn servers_are_called_by_names_that_can_be_spoken() {
        let houses = ["zwave", "upstairs"].map(str::to_owned);
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
            assert_eq!(spoken(names.iter(), &houses).as_deref(), expected);
        }
    }

    #[test]
    fn a_house_is_known_by_zwave_in_its_name_or_its_program() {
        for (name, command, expected) in [
            ("zwave", "x", true),
            ("My-Z-Wave", "x", true),
            ("upstairs", "/opt/zwave-mcp-server", true),
            ("upstairs", "/opt/toolgate zwave-mcp-server", true),
            ("upstairs", "npx -y @somebody/zwave-js-mcp", true),
            ("warehouse", "stock-mcp", false),
            ("homepage", "web-mcp", false),
            ("notes", "files-mcp /home/ada/zwave-mcp/notes", false),
            ("notes", "files-mcp zwave.txt", false),
        ] {
            let mut words = command.split(' ').map(str::to_owned);
            let program = Program {
                command: words.next().unwrap(),
                args: words.collect(),
                ..Program::default()
            };
            let settings = ServerSettings::new(name, Connection::Stdio(program));
            assert_eq!(is_house(&settings), expected, "{name} {command}");
        }
    }
}
