//! Typed views of objects, read once and shared by all mirrors of a process: a large EndpointSlice takes longer to read than to
//! act upon.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use fairlead_api::source::{Key, Object};
use fairlead_api::view::View;

/// The views of all types.
#[derive(Default)]
pub(crate) struct Views {
    types: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Views {
    /// The views of one type.
    pub(crate) fn of<T: View>(&self) -> Arc<Shared<T>> {
        let mut types = self.types.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = types.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(Shared::<T>::new())).clone();
        shared.downcast().expect("the entry of a type holds views of that type")
    }
}

/// The newest view of each object, for as long as somebody holds it.
pub(crate) struct Shared<T> {
    known: Mutex<Known<T>>,
}

struct Known<T> {
    views: HashMap<Key, (u64, Weak<T>), foldhash::fast::RandomState>,
    /// Once there are so many, those nobody holds are let go.
    sweep_at: usize,
}

/// Fewer than this are not worth a sweep.
const SWEEP_AT_LEAST: usize = 256;

impl<T: View> Shared<T> {
    fn new() -> Shared<T> {
        Shared { known: Mutex::new(Known { views: HashMap::default(), sweep_at: SWEEP_AT_LEAST }) }
    }

    /// The view of an object: that of another mirror if it has read the same version, else a new one.
    pub(crate) fn read(&self, object: &Object) -> Result<Arc<T>, String> {
        if let Some(view) = self.find(object) {
            return Ok(view);
        }
        // Not under the lock: two mirrors may now and then read the same object, but none waits for another to read.
        let view: T = serde_json::from_slice(&object.json).map_err(|error| error.to_string())?;
        let view = Arc::new(view);
        self.keep(object, &view);
        Ok(view)
    }

    /// The object is gone.
    pub(crate) fn forget(&self, key: &Key) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).views.remove(key);
    }

    fn find(&self, object: &Object) -> Option<Arc<T>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (revision, view) = known.views.get(&object.key)?;
        if *revision == object.revision { view.upgrade() } else { None }
    }

    fn keep(&self, object: &Object, view: &Arc<T>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.views.get(&object.key).is_none_or(|(revision, _)| *revision <= object.revision) {
            known.views.insert(object.key.clone(), (object.revision, Arc::downgrade(view)));
        }
        if known.views.len() >= known.sweep_at {
            known.views.retain(|_, (_, view)| view.strong_count() > 0);
            known.sweep_at = (2 * known.views.len()).max(SWEEP_AT_LEAST);
        }
    }
}
