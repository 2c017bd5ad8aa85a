//! The crate's public functions for text, names and records, each with what it returns.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_core::text::{
    escape, fold_char, is_invisible, is_visible, mark_truncated, strip_invisible,
    strip_invisible_in_schema, truncate,
};
use toolgate_core::{
    ApprovalActor, ApprovalChannel, CallId, DestructivePolicy, Origin, ParameterNames, Policy,
    PolicyDecision, Redactor, RenameMode, Scope, ToolCall, ToolContent, ToolError, ToolOutput,
    ToolPattern, ToolRank, ToolSource, TraceContext, ValueCounter, display_name, has_more_values,
    is_redacted, sanitize, wire_names,
};

use crate::support::{executor_of, open_definition};

#[test]
fn text_is_escaped_folded_and_truncated() {
    assert_eq!(escape("one\nline"), "one\\nline");
    assert!(is_invisible('\u{202e}') && !is_invisible('é'));
    assert_eq!(truncate("short", 10), "short");
    assert_eq!(truncate("ééé", 3), "é… (4 more bytes)");
    assert_eq!(mark_truncated("be".to_owned(), 7), "be… (7 more bytes)");
    let mut word = String::new();
    "Œuvre à Łódź"
        .chars()
        .for_each(|letter| fold_char(letter, &mut word));
    assert_eq!(word, "oeuvre a lodz");
    assert_eq!(display_name("un\u{200b}lock"), r"un\u{200b}lock");
    assert_eq!(display_name(r"un\u{200b}lock"), r"un\\u{200b}lock");
}

#[test]
fn invisible_characters_are_removed_where_a_model_reads() {
    assert!(is_visible("two\nlines") && !is_visible("a\u{200b}b"));
    assert_eq!(strip_invisible("Adds\u{e0041} two\u{1b}[8m"), "Adds two[8m");
    let schema = json!({ "description": "a\u{200b}b", "enum": ["c\u{200b}"] });
    let shown = json!({ "description": "ab", "enum": ["c\u{200b}"] });
    assert_eq!(strip_invisible_in_schema(&schema), shown);
}

#[test]
fn recorded_values_are_sanitized() {
    let redactor = Redactor::default();
    let name = sanitize::name(&redactor, "echo\u{1b}[2J");
    assert_eq!(name, "echo\\u{1b}[2J");
    let long = sanitize::text(&redactor, &"x".repeat(20_000));
    assert!(long.ends_with("… (3616 more bytes)"));
    let whole = json!({ "pin": "[REDACTED]", "door": "front" });
    let given = json!({ "pin": 1234, "door": "front" });
    let listed = sanitize::value(&redactor, &given, sanitize::MAX_LISTED_ARGUMENTS);
    assert_eq!(listed, (whole, false));
    let (cut, is_cut) = sanitize::value(&redactor, &json!([1, 2, 3]), 3);
    assert_eq!((cut, is_cut), (json!("[1,… (4 more bytes)"), true));
    let cut = sanitize::json(&redactor, &json!([1, 2, 3]), 3);
    let text = "\"[1,… (4 more bytes)\"";
    assert_eq!((cut.text.as_str(), cut.bytes), (text, 7));
    assert_eq!(sanitize::length(&json!({ "a": [1, 2] })), 11);
}

#[test]
fn known_secrets_are_redacted() {
    let redactor = Redactor::new(["tok-12345".to_owned()]);
    let value = json!({ "password": "x", "url": "/?t=tok-12345" });
    let shown = r#"{"password":"[REDACTED]","url":"/?t=[REDACTED]"}"#;
    assert_eq!(redactor.json(&value, 100), shown);
    assert_eq!(
        redactor.redact_known(r#"sends { "token": "yours" } with tok-12345"#),
        r#"sends { "token": "yours" } with [REDACTED]"#
    );
    let of_call = Redactor::default();
    let arguments = json!({ "user": "ann", "password": "hunter2" });
    let of_call = of_call.for_call(&arguments);
    assert_eq!(of_call.text("ann is hunter2!"), "ann is [REDACTED]!");
    let kept = Redactor::default().value(&json!({ "deep": [{ "password": "x" }] }));
    assert!(is_redacted(&kept) && !is_redacted(&json!({ "deep": ["x", 1] })));
}

#[test]
fn names_for_protocols_are_legal_and_stable() {
    let (odd, plain) = (open_definition("get weather"), open_definition("echo"));
    let (odd, plain) = (odd.build().unwrap(), plain.build().unwrap());
    let assigned = wire_names::assign(&[&odd, &plain], 64, false);
    assert_eq!(assigned, ["get_weather", "echo"]);
    assert_eq!(
        wire_names::assign_stable(&["get weather", "get_weather"], 64),
        ["get_weather_90c99821", "get_weather"]
    );
    assert_eq!(wire_names::to_legal("house.lights", 64), "house_lights");
    assert_eq!(wire_names::to_legal("Größe", 64), "Grosse");
    let suffixed = wire_names::with_suffix("lamp", "the lamp", 64);
    assert_eq!(suffixed, "lamp_5b76f765");
}

#[test]
fn values_are_counted_before_they_are_parsed() {
    let mut counter = ValueCounter::default();
    counter.feed(br#"{"a": [1, {}, "x,"#);
    assert_eq!(counter.feed(br#"y"]}"#), 5);
    assert!(has_more_values(b"[1, 2, 3]", 3) && !has_more_values(b"[1, 2, 3]", 4));
}

#[test]
fn kinds_have_the_names_that_the_journal_stores() {
    assert_eq!(Origin::CommandLine.to_string(), "cli");
    assert_eq!(ApprovalChannel::Flag.to_string(), "option");
    let browser = ApprovalActor::new(ApprovalChannel::Browser).with_name("serve.token");
    assert_eq!(browser.to_string(), "serve.token (browser)");
    let terminal = ApprovalActor::new(ApprovalChannel::Terminal);
    assert_eq!(terminal.to_string(), "terminal");
    assert_eq!(ToolSource::Mcp("house".to_owned()).to_string(), "mcp:house");
    assert!(ToolSource::Builtin.is_local());
}

#[test]
fn kinds_are_ordered() {
    assert!(
        DestructivePolicy::Allow < DestructivePolicy::Ask
            && DestructivePolicy::Ask < DestructivePolicy::Deny
    );
    let ranks = [
        ToolRank::Override(7),
        ToolRank::Local,
        ToolRank::Server(0),
        ToolRank::Server(1),
    ];
    assert!(ranks.is_sorted());
    let id = || -> CallId { ToolCall::new("echo", json!({})).id() };
    let (first, second) = (id(), id());
    assert!(first < second);
    assert_eq!(first.to_string().len(), 32);
}

#[test]
fn policies_and_scopes_narrow_each_other() {
    let policy = |value: Value| serde_json::from_value::<Policy>(value).unwrap();
    let outer = policy(json!({ "deny": ["search"] }));
    let both = policy(json!({ "allow": ["echo", "search"] })).narrowed_by(outer);
    let search = open_definition("search").build().unwrap();
    let echo = open_definition("echo").build().unwrap();
    assert_eq!(both.decide(&search), PolicyDecision::Hide);
    assert_eq!(both.decide(&echo), PolicyDecision::Allow);
    let only_echo = Scope::only(vec![ToolPattern::new("echo")]).for_caller("kitchen");
    assert!(only_echo.allows(&echo) && !only_echo.allows(&search));
    let without = Scope::default().except(vec![ToolPattern::new("echo")]);
    assert!(!without.allows(&echo) && !without.is_unrestricted());
    let nothing = only_echo.within(&without);
    assert!(!nothing.allows(&echo));
    assert_eq!(nothing.caller(), Some("kitchen"));
    assert!(!Policy::default().flow.is_on());
}

#[test]
fn a_request_joins_the_trace_of_its_caller() {
    let caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let request = TraceContext::for_request(Some(caller));
    assert_eq!(request.trace_id(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(request.parent_id().as_deref(), Some("b7ad6b7169203331"));
    let call = ToolCall::new("echo", json!({})).id();
    let call = TraceContext::for_call(call, Some(&request.to_string()));
    assert_eq!(call.parent_id(), Some(request.span_id()));
}

#[test]
fn details_are_removed_for_callers_who_are_not_operators() {
    let error = ToolError::failed("it broke").with_details("stderr: a line");
    assert_eq!(error.details(), Some("stderr: a line"));
    assert_eq!(error.without_details().details(), None);
    let error = ToolError::unavailable("search", "no network");
    assert!(error.is_transient());
}

#[test]
fn outputs_are_rendered_for_programs_and_models() {
    assert_eq!(ToolOutput::text("21 °C").to_result(), "21 °C");
    let output = ToolOutput::json(json!({ "celsius": 21 }));
    assert_eq!(output.to_text(), r#"{"celsius":21}"#);
    let image = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
    let image = ToolContent::from(image);
    assert_eq!((image.kind(), image.as_text()), ("image", None));
}

#[test]
fn declared_parameters_are_sent_under_the_servers_name() {
    let names = ParameterNames::new(RenameMode::Undeclared, Default::default());
    let definition = open_definition("lamp").source(ToolSource::Mcp("house".to_owned()));
    let definition = definition.parameter_names(names).build().unwrap();
    assert_eq!(
        definition.parameter_names().sent_name("device_name"),
        "deviceName"
    );
}

#[tokio::test]
async fn a_call_to_a_server_without_tools_says_why() {
    let executor = executor_of([]);
    let manager = Arc::clone(executor.manager());
    manager.set_absent_reason("house", Some("its server 'house' is disabled"));
    let call = ToolCall::new("house__lamp", json!({}));
    assert_eq!(
        executor.execute(call).await.error().unwrap(),
        "The house__lamp service is currently unavailable: its server 'house' is disabled"
    );
}
