use super::*;

fn failure(status: u16, kind: &str, message: &str) -> ErrorResponse {
    ErrorResponse {
        provider: Provider::Anthropic,
        url: "https://api.example.com/v1/messages".to_owned(),
        status,
        retry_after: None,
        message: message.to_owned(),
        kind: kind.to_owned(),
        code: String::new(),
    }
}

#[test]
fn every_status_has_its_own_message_and_retry_rule() {
    for (status, kind, message, retryable, expected) in [
        (
            400,
            "invalid_request_error",
            "tools.0: bad schema",
            false,
            "anthropic refused the request: tools.0: bad schema",
        ),
        (
            401,
            "authentication_error",
            "invalid x-api-key",
            false,
            "anthropic does not accept the key: invalid x-api-key; set ANTHROPIC_API_KEY, or model.key in the configuration",
        ),
        (
            403,
            "permission_error",
            "not yours",
            false,
            "anthropic does not accept the key: not yours; set ANTHROPIC_API_KEY, or model.key in the configuration",
        ),
        (
            404,
            "not_found_error",
            "model: some-model",
            false,
            "anthropic has no model 'some-model' (model: some-model); choose another with --model, or as model.name in the configuration",
        ),
        (
            404,
            "",
            "Not Found",
            false,
            "anthropic refused the request: nothing was found at https://api.example.com/v1/messages (Not Found); check the address (ANTHROPIC_BASE_URL, or model.url in the configuration)",
        ),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 200001 tokens > 200000 maximum",
            false,
            "the conversation is too long for some-model: prompt is too long: 200001 tokens > 200000 maximum; start a new conversation, or offer fewer tools",
        ),
        (
            413,
            "request_too_large",
            "Request exceeds the maximum size",
            false,
            "the conversation is too long for some-model: Request exceeds the maximum size; start a new conversation, or offer fewer tools",
        ),
        (
            422,
            "",
            "missing field",
            false,
            "anthropic refused the request: missing field",
        ),
        (
            429,
            "rate_limit_error",
            "slow down",
            true,
            "anthropic asks to slow down: slow down; try again in a minute",
        ),
        (
            429,
            "",
            "Quota exceeded for requests per minute",
            true,
            "anthropic asks to slow down: Quota exceeded for requests per minute; try again in a minute",
        ),
        (
            429,
            "insufficient_quota",
            "You exceeded your current quota",
            false,
            "anthropic asks to slow down: You exceeded your current quota; waiting does not help: look at the plan and the budget of the key's account",
        ),
        (
            429,
            "rate_limit_error",
            "This workspace has hit its monthly spend limit",
            false,
            "anthropic asks to slow down: This workspace has hit its monthly spend limit; waiting does not help: look at the plan and the budget of the key's account",
        ),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API",
            false,
            "anthropic asks to slow down: Your credit balance is too low to access the API; waiting does not help: look at the plan and the budget of the key's account",
        ),
        (
            500,
            "api_error",
            "oops",
            true,
            "anthropic failed: oops (status 500)",
        ),
        (
            504,
            "timeout_error",
            "late",
            true,
            "anthropic failed: late (status 504)",
        ),
        (
            529,
            "overloaded_error",
            "Overloaded",
            true,
            "anthropic failed: Overloaded (status 529)",
        ),
        (408, "", "late", true, "anthropic failed: late (status 408)"),
        (418, "", "tea", false, "anthropic refused the request: tea"),
    ] {
        let error = failure(status, kind, message).into_model_error("some-model");
        assert_eq!(error.to_string(), expected, "{status}");
        assert_eq!(error.is_retryable(), retryable, "{status} {message}");
    }
}

#[test]
fn errors_without_a_model_name_no_model() {
    for (status, message, expected) in [
        (
            404,
            "/v1/models not found",
            "anthropic refused the request: nothing was found at https://api.example.com/v1/messages (/v1/models not found); check the address (ANTHROPIC_BASE_URL, or model.url in the configuration)",
        ),
        (413, "too large", "anthropic refused the request: too large"),
        (
            400,
            "bad context window",
            "anthropic refused the request: bad context window",
        ),
    ] {
        let error = failure(status, "", message).into_model_error("");
        assert_eq!(error.to_string(), expected);
        assert!(!error.is_retryable(), "{error}");
    }
}

#[test]
fn the_message_says_when_to_try_again() {
    let mut failure = failure(429, "", "slow down");
    failure.retry_after = Some(Duration::from_millis(1500));
    let error = failure.into_model_error("some-model");
    assert_eq!(
        error.to_string(),
        "anthropic asks to slow down: slow down; try again in 2 s"
    );
    assert_eq!(error.retry_after(), Some(Duration::from_millis(1500)));
}

#[test]
fn the_type_and_code_are_read_too() {
    let (message, kind, code) =
        error_fields(r#"{"error":{"message":"no","type":"invalid_request_error","code":404}}"#);
    let said = (message.as_str(), kind.as_str(), code.as_str());
    assert_eq!(said, ("no", "invalid_request_error", "404"));
}

#[derive(Debug)]
struct Layer(&'static str, Option<Box<dyn Error>>);

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Layer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1.as_deref()
    }
}

#[test]
fn the_root_cause_is_found() {
    let url = "https://api.example.com/v1".parse().unwrap();
    let inside = |error: Box<dyn Error>| Layer("outer", Some(error));
    let no_name = Layer("dns error", Some("Name or service not known".into()));
    let tls = rustls::Error::HandshakeNotComplete;
    for (error, expected) in [
        (
            inside(no_name.into()),
            "the host 'api.example.com' was not found (Name or service not known)",
        ),
        (
            inside(std::io::Error::other(tls.clone()).into()),
            &format!("no secure connection could be made ({tls})"),
        ),
        (
            inside(std::io::Error::from(ErrorKind::ConnectionRefused).into()),
            "nothing listens there (connection refused)",
        ),
        (
            inside(std::io::Error::from(ErrorKind::TimedOut).into()),
            "no connection in time",
        ),
        (inside("what\never".into()), "what\\never"),
    ] {
        assert_eq!(
            unreachable(Provider::OpenAi, &url, &error),
            format!(
                "{expected}; check the network, and the address (OPENAI_BASE_URL, or model.url in the configuration)"
            )
        );
    }
}
