//! `math_eval`: evaluates an expression with `toolgate-math`;
//! `docs/math.md` describes its language.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolgate_core::{
    Annotations, CallContext, Handler, ToolError, ToolFuture, ToolOutput, ValidArguments,
};
use toolgate_math::{Budget, evaluate};

use super::BuiltinTool;

pub(super) fn builtin() -> BuiltinTool {
    BuiltinTool {
        name: "math_eval",
        description: "Calculates an expression and returns its value. Use it for every calculation instead of working it out \
                      yourself. Numbers have about 15 digits; `bignumber(\"9007199254740993\") + 2` has 64, `fraction(1, 3)` is \
                      exact. It speaks the language of mathjs: arithmetic (`2 + 3 * 4^2`, `7 mod 3`, `100 + 10%`), \
                      functions (`sqrt(16)`, `log(8, 2)`, `round(pi, 2)`, `mean([1, 2, 3])`), units (`5 cm to inch`, `20 degC to \
                      degF`), variables and own functions (`a = 3; a * 2`), matrices (`det([1, 2; 3, 4])`), complex numbers.",
        parameters: json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "expression": {
                    "type": "string", "minLength": 1,
                    "description": "The expression, like `(1.2 + 3) * 2` or `90 km/h to m/s`"
                }
            },
            "required": ["expression"]
        }),
        annotations: Annotations::READ_ONLY,
        handler: Arc::new(MathEvalHandler),
    }
}

#[derive(Deserialize)]
struct MathEvalArguments {
    expression: String,
}

struct MathEvalHandler;

impl Handler for MathEvalHandler {
    fn call<'a>(&'a self, arguments: ValidArguments, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let MathEvalArguments { expression } = arguments.parse()?;
            // Pure computation, even if only for milliseconds, mustn't block a thread of the async
            // runtime.
            let work = tokio::task::spawn_blocking(move || {
                evaluate(&expression, &Budget::default())?.to_json()
            });
            let value = work
                .await
                .map_err(|error| ToolError::failed_because("The calculation was stopped", error))?;
            let value = value.map_err(|error| ToolError::failed(error.to_string()))?;
            Ok(ToolOutput::json(json!({ "result": value })))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use toolgate_core::{ToolCall, ToolExecutor, ToolManager};

    use super::*;
    use crate::HandlerRegistry;
    use crate::builtin::BuiltinSettings;

    async fn envelope(expression: &str) -> Value {
        let manager = Arc::new(ToolManager::new());
        manager.add_all(HandlerRegistry::new(&BuiltinSettings::default()).builtin_tools());
        let call = ToolCall::new("math_eval", json!({ "expression": expression }));
        ToolExecutor::new(manager).execute(call).await.to_envelope()
    }

    #[tokio::test]
    async fn im4_an_expression_gives_its_result_and_an_integer_stays_one() {
        for (expression, expected) in [
            ("2+2", r#"{"result":4}"#),
            ("1/4", r#"{"result":0.25}"#),
            ("0.1+0.2", r#"{"result":0.30000000000000004}"#),
            ("[1, 2; 3, 4] * 2", r#"{"result":[[2,4],[6,8]]}"#),
            ("2 inch to cm", r#"{"result":"5.08 cm"}"#),
            ("f(x) = x^2; f(4)", r#"{"result":16}"#),
            ("3 > 2", r#"{"result":true}"#),
            // As the description says.
            (
                r#"bignumber("9007199254740993") + 2"#,
                r#"{"result":"9.007199254740995e+15"}"#,
            ),
            ("fraction(1, 3) * 3", r#"{"result":"1/1"}"#),
        ] {
            assert_eq!(
                envelope(expression).await["result"].to_string(),
                expected,
                "{expression}"
            );
        }
    }

    #[tokio::test]
    async fn im4_an_invalid_expression_gives_a_descriptive_error() {
        for (expression, expected) in [
            ("2+", "Unexpected end of expression (char 3)"),
            ("sqr(4)", "Undefined function sqr; did you mean sqrt?"),
        ] {
            let envelope = envelope(expression).await;
            assert_eq!(
                (envelope["error"].as_str(), envelope["error_kind"].as_str()),
                (Some(expected), Some("tool_error"))
            );
        }
        let infinite = envelope("1/0").await;
        assert!(
            infinite["error"]
                .as_str()
                .is_some_and(|error| error.contains("JSON")),
            "{infinite}"
        );
    }

    #[tokio::test]
    async fn im4_no_expression_hangs_crashes_or_exhausts_the_process() {
        for expression in [
            "9^9^9^9".to_owned(),
            "200000!".to_owned(),
            "(".repeat(40_000),
            "1".repeat(1_000_000),
            format!("1{}", "+1".repeat(200_000)),
            format!("{}1", "-".repeat(100_000)),
            "1:1e12".to_owned(),
            "ones(1e6, 1e6)".to_owned(),
            "f(x) = f(x); f(1)".to_owned(),
        ] {
            let envelope = envelope(&expression).await;
            assert_eq!(
                envelope["success"],
                false,
                "{}",
                &expression[..20.min(expression.len())]
            );
        }
        assert_eq!(
            envelope("1+1").await["result"]["result"],
            2,
            "the process is untouched"
        );
    }
}
