//! Panics of foreign code become values (I7).

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::error::Reason;

pub(crate) fn contain<T>(body: impl FnOnce() -> T) -> Result<T, Reason> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Reason::Panicked(text.unwrap_or_default())
    })
}

/// A future whose panic is its error.
pub(crate) struct Contained<F>(pub F);

impl<T, F: Future<Output = Result<T, Reason>> + Unpin> Future for Contained<F> {
    type Output = Result<T, Reason>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match contain(|| Pin::new(&mut self.0).poll(context)) {
            Ok(poll) => poll,
            Err(reason) => Poll::Ready(Err(reason)),
        }
    }
}
