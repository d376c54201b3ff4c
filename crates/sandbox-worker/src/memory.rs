//! Memory of this library. Where none is left while a job runs, the process says so and ends: the usual end, an abort, would look like a
//! crash of a C library.

use crate::wire;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

/// The last word of a process that has no memory for one.
const LAST_WORD: &[u8] = br#"{"type":"ended","ended":{"how":"memory","traceback":""}}"#;

static TELLS: AtomicBool = AtomicBool::new(false);

/// From now on there is a host to tell.
pub(crate) fn tell_the_host() {
    TELLS.store(true, Ordering::Relaxed);
}

/// The system's memory.
pub(crate) struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

fn given(place: *mut u8) -> *mut u8 {
    if place.is_null() && TELLS.load(Ordering::Relaxed) {
        wire::last_word(LAST_WORD);
    }
    place
}

// SAFETY: every call is passed on to the system's allocator as it came, and so is what it gives.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        given(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        given(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        given(unsafe { System.realloc(place, layout, size) })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) };
    }
}
