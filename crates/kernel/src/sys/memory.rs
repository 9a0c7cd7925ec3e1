//! Upkeep of the allocator.

// Only to link mimalloc, whose bindings without the feature `extended` leave out the one function
// that is needed.
use libmimalloc_sys as _;

unsafe extern "C" {
    /// `void mi_collect(bool force)` of mimalloc.h.
    fn mi_collect(force: bool);
}

/// Collects what other threads have freed of this thread's memory.
pub(crate) fn collect() {
    // SAFETY: no pointers are passed; the function works on the heap of the calling thread and may
    // be called at any time.
    unsafe { mi_collect(false) }
}
