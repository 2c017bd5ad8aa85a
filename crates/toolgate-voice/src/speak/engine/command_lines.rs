//! The command lines of speech programs.

use toolgate_net::split_command;

use crate::EngineError;

const TEXT_PLACEHOLDER: &str = "{text}";
pub(super) const FILE_PLACEHOLDER: &str = "{file}";

/// Builds the command with its placeholders. Without one for the text, the text goes to stdin.
pub(super) fn command_line(setting: &str, voice: &str) -> Result<Vec<String>, EngineError> {
    let problem = |why: &str| EngineError::program(setting, why);
    let (fixed, voiced): (&str, &[&str]) = match setting {
        // Without `-m`, espeak-ng doesn't interpret markup in a model's text.
        "espeak-ng" => ("espeak-ng --stdin --stdout -b 1", &["-v"]),
        "piper" if voice.is_empty() => {
            return Err(problem(
                "it has no default voice; set `voice.ttsVoice` to the file of one (.onnx)",
            ));
        }
        "piper" => ("piper -f -", &["-m"]),
        "flite" => ("flite -o /dev/stdout -t {text}", &["-voice"]),
        // `say` can only write to files.
        "say" => (
            "say -o {file} --file-format=WAVE --data-format=LEI16@22050 -f -",
            &["-v"],
        ),
        whole => {
            return split_command(whole).ok_or_else(|| problem("it has an unclosed quote"));
        }
    };
    let mut words: Vec<String> = fixed.split(' ').map(str::to_owned).collect();
    if !voice.is_empty() {
        let option = voiced.iter().copied().chain([voice]);
        words.splice(1..1, option.map(str::to_owned));
    }
    Ok(words)
}

pub(super) fn fill_text(command: &[String], text: &str) -> (Vec<String>, String) {
    let text = as_one_line(text);
    let mut words = command.to_vec();
    // The program's name must never come from a model.
    let arguments = words.iter_mut().skip(1);
    let placeholders: Vec<&mut String> =
        arguments.filter(|word| *word == TEXT_PLACEHOLDER).collect();
    if placeholders.is_empty() {
        return (words, text + "\n");
    }
    placeholders
        .into_iter()
        .for_each(|word| word.clone_from(&text));
    (words, String::new())
}

// One line that no program takes for an option: the text is a model's and may be hostile.
fn as_one_line(text: &str) -> String {
    let text: String = text.chars().filter(|letter| *letter != '\0').collect();
    let line = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let words: Vec<&str> = line.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
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
    fn known_programs_get_their_own_options() {
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
            assert_eq!(command_line(setting, voice).unwrap().join(" "), expected);
        }
        for known in CommandTts::KNOWN {
            assert_ne!(command_line(known, "voice").unwrap(), [known], "{known}");
        }
        for (setting, expected) in [
            (
                "piper",
                "piper: it has no default voice; set `voice.ttsVoice` to the file of one (.onnx)",
            ),
            ("say 'hello", "say 'hello: it has an unclosed quote"),
        ] {
            assert_eq!(command_line(setting, "").unwrap_err().to_string(), expected);
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
                fill_text(&argument, text),
                (
                    vec!["p".to_owned(), "--".to_owned(), expected.to_owned()],
                    String::new()
                )
            );
            assert_eq!(
                fill_text(&stdin, text),
                (vec!["p".to_owned()], format!("{expected}\n"))
            );
        }
        assert_eq!(fill_text(&["{text}".to_owned()], "sh").0, ["{text}"]);
    }
}
