//! Word of the door's closing, for answers that have no end of their own: a stream on which a client only listens ends with the door, and
//! a call that works is left its time. It closes nothing itself.

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::watch;

/// Whether the door closes; with every request that came through it.
#[derive(Debug, Clone)]
pub(crate) struct Closing(watch::Receiver<bool>);

impl Closing {
    pub(super) const fn new(closed: watch::Receiver<bool>) -> Self {
        Self(closed)
    }

    /// Ready once the door closes, or is gone.
    pub(super) async fn begun(&mut self) {
        let _ = self.0.wait_for(|closed| *closed).await;
    }

    /// The same body, which ends when the door begins to close.
    pub(crate) fn ends(mut self, body: Body) -> Body {
        Body::new(Until { body, closing: Box::pin(async move { self.begun().await }) })
    }
}

struct Until {
    body: Body,
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl HttpBody for Until {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // What is there to be read goes out first; a stream that is quiet has nothing to lose.
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => self.closing.as_mut().poll(cx).map(|()| None),
            ready => ready,
        }
    }
}
