//! The lock of a shard.

use std::hint;

use spin::{
    mutex::spin::{SpinMutex, SpinMutexGuard},
    relax::Yield,
};

/// A spin lock: it is held for some tens of nanoseconds, less than it takes to park a thread.
/// Releasing it is a plain store, and waiting threads yield.
pub(crate) type Mutex<T> = SpinMutex<T, Yield>;
pub(crate) type Guard<'a, T> = SpinMutexGuard<'a, T, Yield>;

/// Keeps neighbouring locks out of each other's cache lines.
#[repr(align(128))]
pub(crate) struct CacheAligned<T>(pub(crate) T);

/// Locks, spinning once before it yields: the holder is almost done.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
    mutex.try_lock().unwrap_or_else(|| wait_for(mutex))
}

#[cold]
fn wait_for<T>(mutex: &Mutex<T>) -> Guard<'_, T> {
    hint::spin_loop();
    if !mutex.is_locked()
        && let Some(guard) = mutex.try_lock()
    {
        return guard;
    }
    mutex.lock()
}
