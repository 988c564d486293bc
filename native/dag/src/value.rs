//! What travels along an edge: anything, shared, cheap to clone.

use std::any::Any;
use std::sync::Arc;

/// A value of any type, or nothing: what a skipped or optional node gives.
#[derive(Clone, Default)]
pub struct Value(Option<Arc<dyn Any + Send + Sync>>);

impl Value {
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Value(Some(Arc::new(value)))
    }

    pub fn shared<T: Any + Send + Sync>(value: Arc<T>) -> Self {
        Value(Some(value))
    }

    pub fn absent() -> Self {
        Value(None)
    }

    pub fn is_absent(&self) -> bool {
        self.0.is_none()
    }

    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }

    /// Shares the value itself, so that it outlives the run.
    pub fn share<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.clone()?.downcast().ok()
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_absent() {
            "Value(absent)"
        } else {
            "Value(..)"
        })
    }
}
