//! Texts as they stand in the file: JSON, compressed when that is worth it. The first byte says which.

use super::KeepError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Read;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// Shorter texts are kept as they are.
const WORTH_IT: usize = 512;

/// Largest text that is read back, bytes; nothing that is written comes near it.
const LARGEST: u64 = 256 << 20;

/// The bytes of a value.
pub(crate) fn pack<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, KeepError> {
    let broken = |fault: String| KeepError::Broken { what: "a value", fault };
    let mut plain = vec![PLAIN];
    serde_json::to_writer(&mut plain, value).map_err(|fault| broken(fault.to_string()))?;
    if plain.len() <= WORTH_IT {
        return Ok(plain);
    }
    let mut packed = vec![ZSTD];
    packed.extend(zstd::bulk::compress(&plain[1..], 1).map_err(|fault| broken(fault.to_string()))?);
    Ok(if packed.len() < plain.len() { packed } else { plain })
}

/// The value of bytes.
pub(crate) fn unpack<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T, KeepError> {
    let broken = |fault: String| KeepError::Broken { what, fault };
    match bytes.split_first() {
        Some((&PLAIN, text)) => serde_json::from_slice(text).map_err(|fault| broken(fault.to_string())),
        Some((&ZSTD, packed)) => {
            let mut text = Vec::new();
            let decoder = zstd::stream::read::Decoder::new(packed).map_err(|fault| broken(fault.to_string()))?;
            decoder.take(LARGEST + 1).read_to_end(&mut text).map_err(|fault| broken(fault.to_string()))?;
            if text.len() as u64 > LARGEST {
                return Err(broken("it is too long".to_owned()));
            }
            serde_json::from_slice(&text).map_err(|fault| broken(fault.to_string()))
        }
        _ => Err(broken("it is neither JSON nor compressed".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn short_and_long_values_come_back() {
        for value in [json!(null), json!({"a": 1}), json!(vec!["D-21 600001"; 500])] {
            let bytes = pack(&value).unwrap();
            assert_eq!(unpack::<Value>("a test", &bytes).unwrap(), value);
        }
        assert!(pack(&json!(vec!["D-21 600001"; 500])).unwrap().len() < 200);
        for bytes in [&b""[..], &b"\x02{}"[..], &b"\x01{}"[..], &b"\x00{"[..]] {
            assert!(unpack::<Value>("a test", bytes).is_err());
        }
    }
}
