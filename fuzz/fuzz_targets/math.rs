//! Any text, evaluated, written and dropped: the same as the property tests in `toolgate-math`, and
//! the promises about memory and time besides.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;

/// What one evaluation may take at most.
const MEMORY: usize = 32 << 20;
/// Ten times the promise: the code under test counts every branch, and other work may
/// share the processor's caches.
const TIME: Duration = Duration::from_millis(500);

fuzz_target!(|expression: &str| {
    let (start, before) = (processor_time(), LIVE.load(Ordering::Relaxed));
    PEAK.store(before, Ordering::Relaxed);
    if let Ok(answer) = toolgate_math::evaluate(expression, &toolgate_math::Budget::default()) {
        let _text = answer.to_string();
        let _json = answer.to_json();
    }
    let took = processor_time().saturating_sub(start);
    assert!(took < TIME, "it took {took:?}");
    let memory = PEAK.load(Ordering::Relaxed) - before;
    assert!(memory < MEMORY, "it took {memory} bytes");
});

/// What this thread has computed so far, which waiting for a processor does not lengthen.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists on every Linux, and `time` outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting the bytes that are in use.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}
