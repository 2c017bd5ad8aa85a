//! [`TraceContext`]: the W3C trace context, sent as `traceparent` and `tracestate`.

use std::fmt;
use std::sync::Arc;

use crate::CallId;
use crate::text::Hex;

// Bytes of a `tracestate` that are passed on.
const MAX_STATE_LEN: usize = 512;
// Both from the standard: the maximum number of entries, and the length from which an entry is
// dropped first when there isn't room for all.
const MAX_ENTRIES: usize = 32;
const LONG_ENTRY: usize = 128;

/// A call's position in a W3C trace. Every call has one: without a trace from the caller,
/// it starts its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    span: u64,
    parent: Option<u64>,
    flags: u8,
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// Makes the call a child of its caller's span. An invalid `traceparent` is ignored,
    /// as the standard demands.
    pub fn for_call(call: CallId, caller: Option<&str>) -> Self {
        // Sampled unless the caller says otherwise, because the operator asked for traces.
        let (trace, parent, flags) = match caller.and_then(parse_trace_parent) {
            Some((trace, parent, flags)) => (trace, Some(parent), flags),
            None => (call.as_u128(), None, 1),
        };
        Self {
            trace,
            // These bits hold the process and its counter, so they are unique within the trace.
            span: (call.as_u128() as u64).max(1),
            parent,
            flags,
            state: None,
        }
    }

    /// Like [`for_call`](Self::for_call), for a request, which contains calls.
    pub fn for_request(caller: Option<&str>) -> Self {
        Self::for_call(CallId::next(), caller)
    }

    /// Sets the caller's `tracestate`, truncated as the standard demands. It is ignored without a
    /// trace from the caller.
    #[must_use]
    pub fn with_state(mut self, state: Option<&str>) -> Self {
        if self.has_remote_parent() {
            self.state = state.and_then(truncate_state).map(Arc::from);
        }
        self
    }

    /// The `tracestate` that this call passes on.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    pub(crate) fn in_trace_of(mut self, first: Option<CallId>) -> Self {
        if let (None, Some(first)) = (self.parent, first) {
            self.trace = first.as_u128();
        }
        self
    }

    pub fn trace_id(&self) -> String {
        Hex::<32>::new(self.trace).as_str().to_owned()
    }

    pub fn span_id(&self) -> String {
        Hex::<16>::new(self.span.into()).as_str().to_owned()
    }

    pub fn parent_id(&self) -> Option<String> {
        let hex = |parent: u64| Hex::<16>::new(parent.into());
        self.parent.map(|parent| hex(parent).as_str().to_owned())
    }

    /// Trace, span and parent as bytes, for exporters.
    pub fn ids(&self) -> ([u8; 16], [u8; 8], Option<[u8; 8]>) {
        let parent = self.parent.map(u64::to_be_bytes);
        (self.trace.to_be_bytes(), self.span.to_be_bytes(), parent)
    }

    /// False if the caller asked not to record the trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    pub(crate) fn has_remote_parent(&self) -> bool {
        self.parent.is_some()
    }
}

/// The `traceparent` that this call passes on, with itself as the parent.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{}-{}-{}",
            Hex::<32>::new(self.trace),
            Hex::<16>::new(self.span.into()),
            Hex::<2>::new(self.flags.into())
        )
    }
}

// `version-trace-parent-flags` in lower case. Later versions may add fields.
fn parse_trace_parent(text: &str) -> Option<(u128, u64, u8)> {
    let mut fields = text.split('-');
    let version = parse_hex(fields.next()?, 2)?;
    let trace = parse_hex(fields.next()?, 32)?;
    let parent = u64::try_from(parse_hex(fields.next()?, 16)?).ok()?;
    let flags = u8::try_from(parse_hex(fields.next()?, 2)?).ok()?;
    let is_known = version != 0xff && (version > 0 || fields.next().is_none());
    (is_known && trace != 0 && parent != 0).then_some((trace, parent, flags))
}

// Returns `None` for characters that can't be in a header. A list that is too long loses whole
// entries, first the long ones, then the last.
fn truncate_state(state: &str) -> Option<String> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
    if !state.bytes().all(is_plain) {
        return None;
    }
    let is_long = state.len() > MAX_STATE_LEN;
    let entries = state.split(',').map(str::trim);
    let entries =
        entries.filter(|entry| !(entry.is_empty() || is_long && entry.len() > LONG_ENTRY));
    let mut kept = String::new();
    for entry in entries.take(MAX_ENTRIES) {
        let comma = if kept.is_empty() { "" } else { "," };
        if kept.len() + comma.len() + entry.len() > MAX_STATE_LEN {
            break;
        }
        kept.push_str(comma);
        kept.push_str(entry);
    }
    (!kept.is_empty()).then_some(kept)
}

fn parse_hex(field: &str, digits: usize) -> Option<u128> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_valid = field.len() == digits && field.bytes().all(is_hex);
    is_valid
        .then(|| u128::from_str_radix(field, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    #[test]
    fn a_call_is_a_child_of_its_caller() {
        let id = CallId::next();
        let trace = TraceContext::for_call(id, Some(CALLER));
        assert_eq!(trace.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(trace.parent_id().as_deref(), Some("b7ad6b7169203331"));
        assert!(trace.has_remote_parent() && !trace.is_sampled());
        let sent = trace.to_string();
        let child = TraceContext::for_call(CallId::next(), Some(&sent));
        assert_eq!(child.parent_id().as_deref(), Some(&*trace.span_id()));
        assert_ne!(child.span_id(), trace.span_id());
    }

    #[test]
    fn related_calls_share_a_trace() {
        let (first, second) = (CallId::next(), CallId::next());
        let begun = TraceContext::for_call(first, None).in_trace_of(Some(first));
        let next = TraceContext::for_call(second, None).in_trace_of(Some(first));
        assert_eq!(begun, TraceContext::for_call(first, None));
        assert_eq!(next.trace_id(), begun.trace_id());
        assert_ne!(next.span_id(), begun.span_id());
        let of_caller = TraceContext::for_call(second, Some(CALLER));
        assert_eq!(of_caller.clone().in_trace_of(Some(first)), of_caller);
    }

    #[test]
    fn tracestate_needs_a_trace_and_is_cut_at_an_entry() {
        let id = CallId::next();
        let entry = |name: &str, length: usize| format!("{name}={}", "v".repeat(length - 2));
        let (short, long) = (entry("a", 100), entry("b", 129));
        let many: Vec<String> = (0..40).map(|number| format!("k{number}=v")).collect();
        let most = [&*short; 5].join(",");
        for (given, expected) in [
            ("a=1,b=2", Some("a=1,b=2".to_owned())),
            (" a=1 ,\t, b=2", Some("a=1,b=2".to_owned())),
            ("", None),
            (" , ", None),
            ("a=1\nb: 2", None),
            ("a=\u{e9}", None),
            (&format!("{long},{most}"), Some(most.clone())),
            (&format!("{most},{short}"), Some(most.clone())),
            (&long, Some(long.clone())),
            (&entry("c", 513), None),
            (&many.join(","), Some(many[..32].join(","))),
        ] {
            let trace = TraceContext::for_call(id, Some(CALLER)).with_state(Some(given));
            assert_eq!(trace.state(), expected.as_deref(), "{given}");
        }
        let begun_here = TraceContext::for_call(id, None).with_state(Some("a=1"));
        assert_eq!(begun_here.state(), None);
    }

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        let id = CallId::next();
        for text in [
            "",
            "tp",
            "00-a-b-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            let trace = TraceContext::for_call(id, Some(text));
            assert_eq!(trace, TraceContext::for_call(id, None), "{text}");
            assert_eq!(trace.trace_id(), id.to_string());
            assert!(!trace.has_remote_parent() && trace.is_sampled());
        }
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
        assert!(TraceContext::for_call(id, Some(later)).has_remote_parent());
    }
}
