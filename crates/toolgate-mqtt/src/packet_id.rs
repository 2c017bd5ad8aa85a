//! Packet ids, which both ends of a connection choose for their own packets.

/// Returns the next free id after `last`, and stores it there. Loops forever if all 65535 are in
/// use; callers stay below the receive window.
pub(crate) fn next_packet_id(last: &mut u16, is_used: impl Fn(u16) -> bool) -> u16 {
    loop {
        *last = last.checked_add(1).unwrap_or(1);
        if !is_used(*last) {
            return *last;
        }
    }
}
