//! Runs the real mathjs in a node process.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A running `mathjs.mjs`. It ends when this is dropped, which closes its stdin.
pub(crate) struct MathjsProcess {
    process: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// The answer of mathjs to one expression.
pub(crate) enum MathjsReply {
    Value(MathjsAnswer),
    Error(String),
}

/// A value of mathjs, in the forms that `mathjs.mjs` explains.
pub(crate) struct MathjsAnswer {
    pub(crate) kind: String,
    pub(crate) number: Option<f64>,
    pub(crate) format: String,
    pub(crate) json: Option<Value>,
}

impl MathjsProcess {
    /// `None` if node or mathjs is missing, after logging it. With `CI=true` that is a failure.
    pub(crate) fn start() -> Option<Self> {
        let modules = thirdparty::MATHJS.folder()?.join("node_modules");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/mathjs.mjs");
        let mut process = Command::new("node")
            .arg(program)
            .arg(modules)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node starts");
        let questions = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("stdout is piped"));
        Some(Self {
            process,
            questions,
            answers,
        })
    }

    /// One reply for each expression. A second thread writes, or both sides could
    /// wait on full pipes.
    pub(crate) fn ask<Text: AsRef<str> + Sync>(
        &mut self,
        expressions: &[Text],
    ) -> Vec<MathjsReply> {
        let questions = self.questions.as_mut().expect("open until dropped");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for expression in expressions {
                    let line = Value::from(expression.as_ref());
                    writeln!(questions, "{line}").expect("node reads the expressions");
                }
            });
            let mut lines = self.answers.by_ref().lines();
            expressions
                .iter()
                .map(|_| {
                    MathjsReply::read(
                        &lines
                            .next()
                            .expect("node answers each line")
                            .expect("in UTF-8"),
                    )
                })
                .collect()
        })
    }
}

impl Drop for MathjsProcess {
    fn drop(&mut self) {
        drop(self.questions.take());
        drop(self.process.wait());
    }
}

impl MathjsReply {
    fn read(line: &str) -> Self {
        let mut reply: Value = serde_json::from_str(line).expect("each reply is JSON");
        let text = |field: &str| reply[field].as_str().map(str::to_owned);
        if reply["ok"] == false {
            return Self::Error(text("error").expect("an error has a message"));
        }
        Self::Value(MathjsAnswer {
            kind: text("type").expect("a value has a type"),
            number: text("number").map(|number| number.parse().expect("a double")),
            format: text("format").expect("a value has a format"),
            json: reply.get_mut("json").map(Value::take),
        })
    }

    pub(crate) fn is_ok(&self) -> bool {
        matches!(self, Self::Value(_))
    }
}

impl fmt::Display for MathjsReply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(answer) => write!(formatter, "{} ({})", answer.format, answer.kind),
            Self::Error(error) => write!(formatter, "error: {error}"),
        }
    }
}
