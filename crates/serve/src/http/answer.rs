//! What goes back: results, and refusals as error records with their headers. Nothing here decides what is refused.

use crate::refusal::broken;
use crate::{Refusal, Reply, ReplyKind};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use serde::Serialize;
use serde_json::{Value, json};
use traderharness_contract::FailureClass;

/// Says that a reply was given before, under the same key.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// An answer that is written already, so that a thread that may block does the work.
#[derive(Debug)]
pub(super) struct Answer {
    status: StatusCode,
    kind: &'static str,
    body: Vec<u8>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Answer {
    /// A JSON answer.
    pub(super) fn json<T: Serialize + ?Sized>(status: StatusCode, body: &T) -> Result<Self, Refusal> {
        let body = serde_json::to_vec(body).map_err(|_| broken())?;
        Ok(Self { status, kind: "application/json", body, headers: Vec::new() })
    }

    /// A text of the given type.
    pub(super) const fn text(kind: &'static str, body: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, kind, body, headers: Vec::new() }
    }

    /// A reply of the house: 200, or `created` for something new, or 202 with the place where its job is asked for.
    pub(super) fn reply(reply: &Reply, created: Option<String>) -> Result<Self, Refusal> {
        let status = match (reply.kind, &created) {
            (ReplyKind::Accepted, _) => StatusCode::ACCEPTED,
            (ReplyKind::Complete, Some(_)) => StatusCode::CREATED,
            (ReplyKind::Complete, None) => StatusCode::OK,
        };
        let mut answer = Self::json(status, &reply.body)?;
        if reply.replayed {
            answer.headers.push((REPLAYED, HeaderValue::from_static("true")));
        }
        let place = created.or_else(|| match reply.kind {
            ReplyKind::Accepted => reply.body["status_url"].as_str().map(str::to_owned),
            ReplyKind::Complete => None,
        });
        if let Some(place) = place.and_then(|place| HeaderValue::from_str(&place).ok()) {
            answer.headers.push((LOCATION, place));
        }
        if reply.kind == ReplyKind::Accepted {
            answer.headers.push((RETRY_AFTER, HeaderValue::from_static("1")));
        }
        Ok(answer)
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// A refusal as a response.
pub(crate) fn refused(refusal: &Refusal) -> Response<Body> {
    let mut response = Response::new(Body::from(refusal.record().to_string()));
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"traderharness\""));
    }
    if refusal.replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    // Whoever is told to come later is told when.
    let pause = refusal.retry_after.or_else(|| (status == StatusCode::TOO_MANY_REQUESTS).then_some(1));
    if let Some(seconds) = pause {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A request that breaks the protocol; the finer code is the status in words.
pub(super) fn protocol(status: StatusCode, message: impl Into<String>) -> Refusal {
    let code = match status {
        StatusCode::NOT_FOUND => "unknown_path",
        StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
        StatusCode::REQUEST_TIMEOUT => "body_timeout",
        StatusCode::PAYLOAD_TOO_LARGE => "body_too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "head_too_large",
        _ => "malformed_request",
    };
    let class = match status {
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => FailureClass::UnsupportedCapability,
        _ => FailureClass::InvalidInput,
    };
    Refusal::new(class, status.as_u16(), code, message, status == StatusCode::REQUEST_TIMEOUT)
}

/// A body of the wrong shape; `path` is a JSON pointer.
pub(super) fn invalid(message: impl Into<String>, path: &str) -> Refusal {
    let message = message.into();
    let issues = json!([{ "path": path, "message": message }]);
    Refusal::new(FailureClass::InvalidInput, 422, "invalid_request", message, true).with("issues", issues)
}

/// Every fault of a body at once.
pub(super) fn faults(issues: &[traderharness_contract::Issue]) -> Refusal {
    let message = traderharness_contract::document::sentences(issues);
    let listed: Vec<Value> = issues.iter().take(60).map(|i| json!({ "path": i.path, "message": i.message })).collect();
    Refusal::new(FailureClass::InvalidInput, 422, "invalid_request", message, true).with("issues", listed)
}

/// A host or an origin that is not ours.
pub(super) fn forbidden(message: &str) -> Refusal {
    Refusal::new(FailureClass::Forbidden, 403, "foreign_site", message, false)
}

/// No place for the call.
pub(super) fn busy() -> Refusal {
    Refusal::new(FailureClass::DependencyUnavailable, 503, "busy", "Too many calls are running; nothing was done.", true).after(1)
}

/// The call goes on without its client.
pub(super) fn still_working() -> Refusal {
    let message = "The answer takes too long; the call goes on. Repeat it with the same Idempotency-Key to get its result.";
    Refusal::new(FailureClass::DependencyUnavailable, 503, "answer_timeout", message, true).after(5)
}
