//! Evaluates, formats and drops any expression, as the property tests in `toolgate-math` do, and
//! also checks the limits of memory and time.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;

/// The most memory that one evaluation may take, in bytes.
const MAX_MEMORY: usize = 32 << 20;
/// Ten times the documented limit, because the code under test counts every branch, and other
/// processes may share the processor's caches.
const MAX_TIME: Duration = Duration::from_millis(500);

fuzz_target!(|expression: &str| {
    let (start, before) = (processor_time(), LIVE.load(Ordering::Relaxed));
    PEAK.store(before, Ordering::Relaxed);
    if let Ok(answer) = toolgate_math::evaluate(expression, &toolgate_math::Budget::default()) {
        let _text = answer.to_string();
        let _json = answer.to_json();
    }
    let took = processor_time().saturating_sub(start);
    assert!(took < MAX_TIME, "it took {took:?}");
    let memory = PEAK.load(Ordering::Relaxed) - before;
    assert!(memory < MAX_MEMORY, "it took {memory} bytes");
});

/// The processor time of this thread. Unlike wall time, it doesn't include waiting for a processor.
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

/// The system's allocator, which also counts the bytes in use.
struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

// SAFETY: every call is passed on unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
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
