//! How the programs that speak want to be asked.

use toolgate_net::command_words;

use crate::EngineError;

/// Where a word of a command stands for the text.
const TEXT: &str = "{text}";

/// Where a word of a command stands for the file the sound shall be written to.
pub(super) const FILE: &str = "{file}";

/// A command, with places for what changes. Without one for the text, the text is given on stdin.
pub(super) fn command(setting: &str, voice: &str) -> Result<Vec<String>, EngineError> {
    let problem = |why: &str| EngineError::program(setting, why);
    let (fixed, voiced): (&str, &[&str]) = match setting {
        // Markup is not interpreted without `-m`.
        "espeak-ng" => ("espeak-ng --stdin --stdout -b 1", &["-v"]),
        "piper" if voice.is_empty() => {
            return Err(problem(
                "it has no usual voice; set `voice.ttsVoice` to the file of one (.onnx)",
            ));
        }
        "piper" => ("piper -f -", &["-m"]),
        "flite" => ("flite -o /dev/stdout -t {text}", &["-voice"]),
        // It can only write to files.
        "say" => (
            "say -o {file} --file-format=WAVE --data-format=LEI16@22050 -f -",
            &["-v"],
        ),
        whole => {
            return command_words(whole).ok_or_else(|| problem("a quote is not closed"));
        }
    };
    let mut words: Vec<String> = fixed.split(' ').map(str::to_owned).collect();
    if !voice.is_empty() {
        words.splice(
            1..1,
            voiced.iter().copied().chain([voice]).map(str::to_owned),
        );
    }
    Ok(words)
}

/// The command for this text, and what of it goes to stdin.
pub(super) fn fill(command: &[String], text: &str) -> (Vec<String>, String) {
    let text = harmless(text);
    let takes_argument = command.iter().skip(1).any(|word| word == TEXT);
    let put = |word: &String| {
        if word == TEXT {
            text.clone()
        } else {
            word.clone()
        }
    };
    // The program itself is never what a model said.
    let program = command.first().cloned();
    let words = program
        .into_iter()
        .chain(command.iter().skip(1).map(put))
        .collect();
    (
        words,
        if takes_argument {
            String::new()
        } else {
            text + "\n"
        },
    )
}

/// One line that no program takes for an option, be it an argument or not.
fn harmless(text: &str) -> String {
    let text: String = text.chars().filter(|letter| *letter != '\0').collect();
    let line = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line = line
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    if line.starts_with('-') {
        format!(" {line}")
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::super::CommandTts;
    use super::*;

    #[test]
    fn every_program_is_asked_in_its_own_words() {
        for (setting, voice, expected) in [
            ("espeak-ng", "", "espeak-ng --stdin --stdout -b 1"),
            (
                "espeak-ng",
                "en-us",
                "espeak-ng -v en-us --stdin --stdout -b 1",
            ),
            ("piper", "a b.onnx", "piper -m a b.onnx -f -"),
            ("flite", "slt", "flite -voice slt -o /dev/stdout -t {text}"),
            (
                "say",
                "",
                "say -o {file} --file-format=WAVE --data-format=LEI16@22050 -f -",
            ),
            ("my 'own command' --x", "ignored", "my own command --x"),
        ] {
            assert_eq!(command(setting, voice).unwrap().join(" "), expected);
        }
        for known in CommandTts::KNOWN {
            assert_ne!(command(known, "voice").unwrap(), [known], "{known}");
        }
        for (setting, expected) in [
            (
                "piper",
                "piper: it has no usual voice; set `voice.ttsVoice` to the file of one (.onnx)",
            ),
            ("say 'hello", "say 'hello: a quote is not closed"),
        ] {
            assert_eq!(command(setting, "").unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn text_is_one_argument_or_one_line_and_never_an_option() {
        let argument = ["p", "--", "{text}"].map(str::to_owned);
        let stdin = ["p"].map(str::to_owned);
        for (text, expected) in [
            ("hello", "hello"),
            ("-v en --help", " -v en --help"),
            ("$(id); `id` \"a\" 'b'", "$(id); `id` \"a\" 'b'"),
            ("two\nlines\r\n\tmore", "two lines more"),
            ("a\0b\u{7}c", "ab c"),
            ("{text} {file}", "{text} {file}"),
            ("\0", ""),
        ] {
            assert_eq!(
                fill(&argument, text),
                (
                    vec!["p".to_owned(), "--".to_owned(), expected.to_owned()],
                    String::new()
                )
            );
            assert_eq!(
                fill(&stdin, text),
                (vec!["p".to_owned()], format!("{expected}\n"))
            );
        }
        assert_eq!(fill(&["{text}".to_owned()], "sh").0, ["{text}"]);
    }
}
