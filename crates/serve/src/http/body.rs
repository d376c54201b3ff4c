//! Reads the body of a request: within its size, within its time, exactly one JSON object without doubled keys. Nothing is repaired.

use super::answer;
use super::settings::Limits;
use crate::Refusal;
use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::timeout;
use traderharness_contract::arguments::{FaultKind, parse_arguments};

/// Whether a body has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// An object.
    Object,
    /// An object, or no byte at all.
    Optional,
}

/// The JSON object of a request.
///
/// # Errors
/// 415 for another content type, 413 beyond the size, 408 beyond the time, 400 for what is not exactly one JSON object.
pub(super) async fn object(
    headers: &HeaderMap,
    mut body: Body,
    need: Need,
    limits: &Limits,
) -> Result<Map<String, Value>, Refusal> {
    let declared = length(headers)?;
    if declared.is_some_and(|length| length > limits.body_bytes as u64) {
        if !headers.contains_key(EXPECT) {
            discard(&mut body).await;
        }
        return Err(too_large(limits.body_bytes));
    }
    if need == Need::Object || headers.contains_key(CONTENT_TYPE) {
        content(headers)?;
    }
    let bytes = whole(&mut body, limits.body_bytes, limits.body_time).await?;
    if bytes.is_empty() && need == Need::Optional {
        return Ok(Map::new());
    }
    content(headers)?;
    let malformed = |message: String| answer::protocol(StatusCode::BAD_REQUEST, message);
    let text = std::str::from_utf8(&bytes).map_err(|_| malformed("The body is not UTF-8.".to_owned()))?;
    if text.trim().is_empty() {
        return Err(malformed("The body is empty; it has to be one JSON object.".to_owned()));
    }
    parse_arguments(text).map_err(|fault| {
        let refusal = match fault.kind {
            FaultKind::NotAnObject => return answer::invalid("The body has to be one JSON object.", ""),
            // These are JSON, but none that is taken.
            FaultKind::NumberRange => answer::invalid(format!("The body is not taken: {fault}."), ""),
            _ => malformed(format!("The body cannot be read: {fault}.")),
        };
        refusal.with("fault", fault.kind.as_str()).with("position", fault.position)
    })
}

/// The declared length. A number that cannot be read never gets this far: the protocol refuses it.
fn length(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get(CONTENT_LENGTH) else { return Ok(None) };
    let read = value.to_str().ok().and_then(|text| text.parse().ok());
    read.map(Some).ok_or_else(|| answer::protocol(StatusCode::BAD_REQUEST, "Content-Length is not a number."))
}

fn content(headers: &HeaderMap) -> Result<(), Refusal> {
    let unsupported = |message: &str| Err(answer::protocol(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(named), None) = (types.next(), types.next()) else {
        return unsupported("Send the body with exactly one Content-Type header: application/json.");
    };
    if !named.to_str().is_ok_and(is_json) {
        return unsupported("The body has to be application/json in UTF-8.");
    }
    let plain = |value: &axum::http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(plain) {
        return unsupported("A compressed body is not taken.");
    }
    Ok(())
}

/// Whether a content type is JSON, in UTF-8 where it says so.
fn is_json(text: &str) -> bool {
    let mut parts = text.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    json && parts.all(|part| match part.split_once('=') {
        Some((name, value)) if name.eq_ignore_ascii_case("charset") => value.trim_matches('"').eq_ignore_ascii_case("utf-8"),
        // Other parameters say nothing that matters here.
        Some(_) => true,
        None => part.is_empty(),
    })
}

/// All bytes of a body.
///
/// # Errors
/// 413 beyond `most` bytes, 408 beyond the time, 400 when it ends early.
pub(crate) async fn whole(body: &mut Body, most: usize, time: Duration) -> Result<Vec<u8>, Refusal> {
    let read = async {
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let cut = |_| answer::protocol(StatusCode::BAD_REQUEST, "The body ended before it was complete.");
            let Ok(part) = frame.map_err(cut)?.into_data() else { continue };
            if bytes.len() + part.len() > most {
                return Err(too_large(most));
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    };
    let slow = |_| answer::protocol(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time.");
    let read = timeout(time, read).await.map_err(slow)?;
    if read.is_err() {
        discard(body).await;
    }
    read
}

/// Takes some of a body that is refused, so that a client that is still sending it reads why: a connection that is closed with unread
/// bytes is reset.
async fn discard(body: &mut Body) {
    const MOST: usize = 8 << 20;
    const TIME: Duration = Duration::from_secs(1);
    let taken = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, |part| part.len());
            if bytes > MOST {
                break;
            }
        }
    };
    let _ = timeout(TIME, taken).await;
}

fn too_large(most: usize) -> Refusal {
    answer::protocol(StatusCode::PAYLOAD_TOO_LARGE, format!("A body may have {most} bytes."))
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn only_json_in_utf8_is_a_body() {
        for good in
            ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\"", "application/json; v=1"]
        {
            assert!(is_json(good), "{good}");
        }
        for bad in
            ["", "text/json", "application/json; charset=gbk", "application/jsonp", "application/json x", "multipart/form-data"]
        {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
