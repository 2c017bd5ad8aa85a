//! Parses the modes on the command line.

use std::path::PathBuf;

#[derive(Default)]
pub(crate) struct FaultModes {
    pub(crate) modern: bool,
    pub(crate) legacy: bool,
    pub(crate) version: Option<String>,
    pub(crate) strict: bool,
    pub(crate) wait: u64,
    pub(crate) failing: Option<(u64, PathBuf)>,
    pub(crate) mute: bool,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) before: Vec<u8>,
    pub(crate) end: Vec<u8>,
    pub(crate) noise: u64,
    pub(crate) flood_stderr: Option<(u64, Vec<u8>)>,
    pub(crate) after: Vec<(String, ExitAction)>,
    pub(crate) deaf: bool,
    pub(crate) child: Option<ChildMode>,
    pub(crate) list: Option<PathBuf>,
    pub(crate) many: usize,
    pub(crate) describe: usize,
    pub(crate) cursor: Option<CursorMode>,
    pub(crate) storm: u64,
    pub(crate) count: Option<PathBuf>,
    pub(crate) content: Option<PathBuf>,
    pub(crate) asking_content: bool,
    pub(crate) tasks: Option<PathBuf>,
}

#[derive(Clone, Copy)]
pub(crate) enum ExitAction {
    Exit(i32),
    Signal(i32),
    CloseStdout,
    CloseStdin,
    StopReading,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ChildMode {
    Group,
    Session,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum CursorMode {
    Same,
    Endless,
}

impl FaultModes {
    /// The error is the argument with an unknown mode or an invalid value.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, &str> {
        let mut modes = Self {
            legacy: true,
            end: b"\n".to_vec(),
            ..Self::default()
        };
        for argument in arguments {
            let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
            modes.set(name, value).ok_or(argument.as_str())?;
        }
        Ok(modes)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "modern" => (self.modern, self.legacy) = (true, false),
            "dual" => self.modern = true,
            "version" => self.version = Some(value.to_owned()),
            "strict" => self.strict = true,
            "wait" => self.wait = value.parse().ok()?,
            "failing" => {
                let (times, file) = value.split_once(':')?;
                self.failing = Some((times.parse().ok()?, file.into()));
            }
            "mute" => self.mute = true,
            "stdout" => self.stdout = unescape(value),
            "stderr" => self.stderr = unescape(value),
            "before" => self.before = unescape(value),
            "end" => self.end = unescape(value),
            "noise" => self.noise = value.parse().ok()?,
            "flood-stderr" => {
                let (total, text) = value.split_once(':')?;
                self.flood_stderr = Some((total.parse().ok()?, unescape(text)));
            }
            "deaf" => self.deaf = true,
            "child" => self.child = Some(parse_child(value)?),
            "list" => self.list = Some(value.into()),
            "many" => self.many = value.parse().ok()?,
            "describe" => self.describe = value.parse().ok()?,
            "cursor" => self.cursor = Some(parse_cursor(value)?),
            "storm" => self.storm = value.parse().ok()?,
            "count" => self.count = Some(value.into()),
            "content" => self.content = Some(value.into()),
            "tasks" => self.tasks = Some(value.into()),
            "asking-content" => self.asking_content = true,
            _ => {
                let method = name.strip_prefix("after:")?;
                self.after.push((method.to_owned(), parse_action(value)?));
            }
        }
        Some(())
    }
}

fn parse_child(value: &str) -> Option<ChildMode> {
    match value {
        "" => Some(ChildMode::Group),
        "setsid" => Some(ChildMode::Session),
        _ => None,
    }
}

fn parse_cursor(value: &str) -> Option<CursorMode> {
    match value {
        "same" => Some(CursorMode::Same),
        "endless" => Some(CursorMode::Endless),
        _ => None,
    }
}

fn parse_action(value: &str) -> Option<ExitAction> {
    Some(match value.split_once(':').unwrap_or((value, "")) {
        ("exit", status) => ExitAction::Exit(status.parse().ok()?),
        ("signal", number) => ExitAction::Signal(number.parse().ok()?),
        ("close-stdout", _) => ExitAction::CloseStdout,
        ("close-stdin", _) => ExitAction::CloseStdin,
        ("stop-reading", _) => ExitAction::StopReading,
        _ => return None,
    })
}

/// Replaces the escapes `\n`, `\r`, `\\` and `\xNN`. Any other backslash is kept.
pub(crate) fn unescape(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let [first, more @ ..] = rest {
        let (byte, used) = match (first, more) {
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [b'\\', ..]) => (b'\\', 2),
            (b'\\', [b'x', high, low, ..]) => match hex(*high).zip(hex(*low)) {
                Some((high, low)) => (high * 16 + low, 4),
                None => (b'\\', 1),
            },
            _ => (*first, 1),
        };
        out.push(byte);
        rest = &rest[used..];
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| value.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_with_escapes() {
        assert_eq!(
            unescape(r"a\n\r\\\xEF\xbb\xg\"),
            b"a\n\r\\\xef\xbb\\xg\\".to_vec()
        );
    }

    #[test]
    fn an_unknown_mode_or_invalid_value_is_named() {
        for argument in ["unknown", "after:x=dance", "wait=soon", "child=twin"] {
            let arguments = ["mute".to_owned(), argument.to_owned()];
            assert_eq!(FaultModes::parse(&arguments).err(), Some(argument));
        }
    }
}
