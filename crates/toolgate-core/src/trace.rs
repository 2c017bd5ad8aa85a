//! Which trace a call belongs to, in the words of the W3C: what travels as `traceparent` and `tracestate`.

use std::fmt;
use std::sync::Arc;

use crate::CallId;
use crate::text::Hex;

/// Bytes of a `tracestate` that are handed on.
const LONGEST_STATE: usize = 512;
/// Entries of a `tracestate`, and bytes of one that goes first where there is not room for all: both as the standard has them.
const MOST_ENTRIES: usize = 32;
const LONG_ENTRY: usize = 128;

/// A call's place in a trace. Every call has one: where the caller named no trace, the call begins its own.
///
/// ```
/// use serde_json::json;
/// use toolgate_core::{ToolCall, Trace};
///
/// let call = ToolCall::new("echo", json!({}));
/// let caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let trace = Trace::of(call.id(), Some(caller));
/// assert_eq!(trace.trace_id(), "0af7651916cd43dd8448eb211c80319c");
/// assert_eq!(trace.parent_id().as_deref(), Some("b7ad6b7169203331"));
/// assert!(trace.to_string().starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    trace: u128,
    span: u64,
    parent: Option<u64>,
    flags: u8,
    state: Option<Arc<str>>,
}

impl Trace {
    /// The call as a child of its caller's span. A `traceparent` that is none counts as not given, as the standard wants.
    pub fn of(call: CallId, caller: Option<&str>) -> Self {
        // Sampled unless the caller says otherwise: a trace that begins here is one the operator asked for.
        let (trace, parent, flags) = match caller.and_then(read) {
            Some((trace, parent, flags)) => (trace, Some(parent), flags),
            None => (call.as_u128(), None, 1),
        };
        Self {
            trace,
            // The process and its counter: unique within the trace.
            span: (call.as_u128() as u64).max(1),
            parent,
            flags,
            state: None,
        }
    }

    /// A span around calls, as a child of its caller's.
    ///
    /// ```
    /// use toolgate_core::{ToolCall, Trace};
    ///
    /// let request = Trace::around(None);
    /// let call = ToolCall::new("echo", serde_json::json!({}));
    /// let trace = Trace::of(call.id(), Some(&request.to_string()));
    /// assert_eq!(trace.parent_id(), Some(request.span_id()));
    /// ```
    pub fn around(caller: Option<&str>) -> Self {
        Self::of(CallId::next(), caller)
    }

    /// The same with what others keep beside the caller's trace: its `tracestate`, cut as the standard wants. Without a trace of
    /// the caller it belongs to nothing.
    #[must_use]
    pub fn with_state(mut self, state: Option<&str>) -> Self {
        if self.is_callers() {
            self.state = state.and_then(bounded).map(Arc::from);
        }
        self
    }

    /// What this call hands on as `tracestate`.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The same in the trace that another call began, unless the caller named one.
    pub(crate) fn begun_by(mut self, first: Option<CallId>) -> Self {
        if let (None, Some(first)) = (self.parent, first) {
            self.trace = first.as_u128();
        }
        self
    }

    /// 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        Hex::<32>::of(self.trace).as_str().to_owned()
    }

    /// The call's own span: 16 hexadecimal digits.
    pub fn span_id(&self) -> String {
        Hex::<16>::of(self.span.into()).as_str().to_owned()
    }

    /// The caller's span, if it named one.
    pub fn parent_id(&self) -> Option<String> {
        let hex = |parent: u64| Hex::<16>::of(parent.into());
        self.parent.map(|parent| hex(parent).as_str().to_owned())
    }

    /// The same as bytes: trace, span, parent.
    pub fn ids(&self) -> ([u8; 16], [u8; 8], Option<[u8; 8]>) {
        let parent = self.parent.map(u64::to_be_bytes);
        (self.trace.to_be_bytes(), self.span.to_be_bytes(), parent)
    }

    /// True unless the caller asked not to record it.
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    /// True if the caller named the trace.
    pub fn is_callers(&self) -> bool {
        self.parent.is_some()
    }
}

/// What this call hands on as `traceparent`: itself as the parent.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{}-{}-{}",
            Hex::<32>::of(self.trace),
            Hex::<16>::of(self.span.into()),
            Hex::<2>::of(self.flags.into())
        )
    }
}

/// `version-trace-parent-flags`, in lower case; later versions may add fields.
fn read(text: &str) -> Option<(u128, u64, u8)> {
    let mut fields = text.split('-');
    let version = hex(fields.next()?, 2)?;
    let trace = hex(fields.next()?, 32)?;
    let parent = u64::try_from(hex(fields.next()?, 16)?).ok()?;
    let flags = u8::try_from(hex(fields.next()?, 2)?).ok()?;
    let is_known = version != 0xff && (version > 0 || fields.next().is_none());
    (is_known && trace != 0 && parent != 0).then_some((trace, parent, flags))
}

/// A list of entries. What can not stand in a header is none; what is too long loses whole entries, the long ones and then the last.
fn bounded(state: &str) -> Option<String> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
    if !state.bytes().all(is_plain) {
        return None;
    }
    let is_long = state.len() > LONGEST_STATE;
    let entries = state.split(',').map(str::trim);
    let entries =
        entries.filter(|entry| !(entry.is_empty() || is_long && entry.len() > LONG_ENTRY));
    let mut kept = String::new();
    for entry in entries.take(MOST_ENTRIES) {
        let comma = if kept.is_empty() { "" } else { "," };
        if kept.len() + comma.len() + entry.len() > LONGEST_STATE {
            break;
        }
        kept.push_str(comma);
        kept.push_str(entry);
    }
    (!kept.is_empty()).then_some(kept)
}

fn hex(field: &str, digits: usize) -> Option<u128> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_sound = field.len() == digits && field.bytes().all(is_hex);
    is_sound
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
        let trace = Trace::of(id, Some(CALLER));
        assert_eq!(trace.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(trace.parent_id().as_deref(), Some("b7ad6b7169203331"));
        assert!(trace.is_callers() && !trace.is_sampled());
        let handed_on = trace.to_string();
        let below = Trace::of(CallId::next(), Some(&handed_on));
        assert_eq!(below.parent_id().as_deref(), Some(&*trace.span_id()));
        assert_ne!(below.span_id(), trace.span_id());
    }

    #[test]
    fn calls_that_belong_together_are_in_the_trace_of_the_first() {
        let (first, second) = (CallId::next(), CallId::next());
        let begun = Trace::of(first, None).begun_by(Some(first));
        let next = Trace::of(second, None).begun_by(Some(first));
        assert_eq!(begun, Trace::of(first, None));
        assert_eq!(next.trace_id(), begun.trace_id());
        assert_ne!(next.span_id(), begun.span_id());
        let of_caller = Trace::of(second, Some(CALLER));
        assert_eq!(of_caller.clone().begun_by(Some(first)), of_caller);
    }

    #[test]
    fn a_state_belongs_to_a_callers_trace_and_is_bounded_by_whole_entries() {
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
            let trace = Trace::of(id, Some(CALLER)).with_state(Some(given));
            assert_eq!(trace.state(), expected.as_deref(), "{given}");
        }
        let begun_here = Trace::of(id, None).with_state(Some("a=1"));
        assert_eq!(begun_here.state(), None);
    }

    #[test]
    fn what_is_no_traceparent_counts_as_none() {
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
            let trace = Trace::of(id, Some(text));
            assert_eq!(trace, Trace::of(id, None), "{text}");
            assert_eq!(trace.trace_id(), id.to_string());
            assert!(!trace.is_callers() && trace.is_sampled());
        }
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more";
        assert!(Trace::of(id, Some(later)).is_callers());
    }
}
