//! `metadata.json` of a dataset: what it says of itself. Never required; never believed about rows.

use crate::error::IngestError;
use serde_json::Value;
use std::path::Path;
use traderharness_market::PriceBasis;

/// What is used of `metadata.json`.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) name: Option<String>,
    pub(crate) synthetic: bool,
    pub(crate) prices: Option<PriceBasis>,
}

/// Longest `metadata.json` that is read.
const MAX_BYTES: u64 = 1 << 20;

impl Metadata {
    pub(crate) fn of_directory(dir: &Path) -> Result<Self, IngestError> {
        let path = dir.join("metadata.json");
        let len = match std::fs::metadata(&path) {
            Ok(found) => found.len(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(IngestError::io("read", &path)(e)),
        };
        if len > MAX_BYTES {
            return Err(IngestError::Metadata { path, detail: format!("is {len} bytes long; at most {MAX_BYTES} are read") });
        }
        let bytes = std::fs::read(&path).map_err(IngestError::io("read", &path))?;
        Self::parse(&path, &bytes)
    }

    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, IngestError> {
        let fault = |detail: String| IngestError::Metadata { path: path.to_owned(), detail };
        let value: Value = serde_json::from_slice(bytes).map_err(|e| fault(format!("is not JSON: {e}")))?;
        let Value::Object(fields) = value else { return Err(fault("is not a JSON object".to_owned())) };
        let name = match fields.get("name") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) if !name.trim().is_empty() && name.len() <= 200 && !name.contains(char::is_control) => {
                Some(name.trim().to_owned())
            }
            Some(_) => return Err(fault("`name` is not a text of 1 to 200 bytes".to_owned())),
        };
        let synthetic = match fields.get("synthetic") {
            // A set that names its generator is invented, whatever else it says.
            None | Some(Value::Null) => fields.contains_key("generator"),
            Some(Value::Bool(flag)) => *flag || fields.contains_key("generator"),
            Some(_) => return Err(fault("`synthetic` is neither true nor false".to_owned())),
        };
        let prices = match fields.get("prices") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text == "raw" => Some(PriceBasis::Raw),
            Some(Value::String(text)) if text == "forward_adjusted" => Some(PriceBasis::ForwardAdjusted),
            Some(other) => return Err(fault(format!("`prices` is {other}; known are \"raw\" and \"forward_adjusted\""))),
        };
        Ok(Self { name, synthetic, prices })
    }
}

pub(crate) const fn basis_name(prices: PriceBasis) -> &'static str {
    match prices {
        PriceBasis::Raw => "raw",
        PriceBasis::ForwardAdjusted => "forward_adjusted",
    }
}
