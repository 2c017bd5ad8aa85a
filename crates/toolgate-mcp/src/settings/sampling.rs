//! Parses the `sampling` of a server's entry.

use serde_json::Value;

use super::values::{EntryError, EntryValue, boolean, object};

/// What a server may use of the configured model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SamplingSettings {
    /// The longest answer to one request, in tokens.
    pub max_tokens: u64,
    /// Tokens that all requests of 24 hours may take, read and written ones together.
    pub tokens_per_day: u64,
}

impl Default for SamplingSettings {
    fn default() -> Self {
        Self {
            max_tokens: 1024,
            tokens_per_day: 100_000,
        }
    }
}

/// `None` without `"allow": true`.
pub(super) fn parse(given: EntryValue<'_>) -> Result<Option<SamplingSettings>, EntryError> {
    let key = given.0;
    let mut is_allowed = false;
    let mut sampling = SamplingSettings::default();
    for (name, value) in object(given)? {
        match name.as_str() {
            "allow" => {
                let allow = boolean(("allow", value));
                is_allowed = allow.map_err(|error| error.under_key(key))?;
            }
            "maxTokens" => sampling.max_tokens = tokens(key, name, value)?,
            "tokensPerDay" => sampling.tokens_per_day = tokens(key, name, value)?,
            // Unknown keys are errors here: an ignored one might be a limit.
            _ => {
                let text = "is unknown; sampling has allow, maxTokens and tokensPerDay";
                return Err(EntryError::at(&[key, name], text));
            }
        }
    }
    Ok(is_allowed.then_some(sampling))
}

fn tokens(key: &str, name: &str, value: &Value) -> Result<u64, EntryError> {
    let number = value.as_u64().filter(|number| *number > 0);
    number.ok_or_else(|| EntryError::at(&[key, name], "must be a number of tokens, at least 1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sampling_is_off_unless_it_is_allowed() {
        let read = |value: &Value| parse(("sampling", value)).map_err(|error| error.text);
        let usual = SamplingSettings::default();
        assert_eq!(read(&json!({})), Ok(None));
        assert_eq!(read(&json!({ "allow": false, "maxTokens": 9 })), Ok(None));
        assert_eq!(read(&json!({ "allow": true })), Ok(Some(usual)));
        let given = json!({ "allow": true, "maxTokens": 9, "tokensPerDay": 70 });
        let expected = SamplingSettings {
            max_tokens: 9,
            tokens_per_day: 70,
        };
        assert_eq!(read(&given), Ok(Some(expected)));
        for (value, problem) in [
            (json!(true), "sampling: must be an object"),
            (
                json!({ "allow": 1 }),
                "sampling.allow: must be true or false",
            ),
            (
                json!({ "allow": true, "maxTokens": 0 }),
                "sampling.maxTokens: must be a number",
            ),
            (
                json!({ "tokensPerDay": "9" }),
                "sampling.tokensPerDay: must be a number",
            ),
            (json!({ "budget": 9 }), "sampling.budget: is unknown"),
        ] {
            let error = read(&value).unwrap_err();
            assert!(error.starts_with(problem), "{error}");
        }
    }
}
