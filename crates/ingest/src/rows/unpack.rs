//! Bytes of one page, unpacked. Must give exactly as many bytes as the page claims and never allocate for more, whatever the bytes say of
//! themselves.

use parquet::basic::CompressionCodec;
use std::io::Read;

/// Whether a codec is read; LZO is not.
pub(super) const fn is_read(codec: CompressionCodec) -> bool {
    !matches!(codec, CompressionCodec::LZO)
}

/// Unpacks pages of one codec; what a decoder needs is kept from page to page.
pub(super) struct Unpack {
    codec: CompressionCodec,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Unpack {
    pub(super) const fn new(codec: CompressionCodec) -> Self {
        Self { codec, zstd: None }
    }

    /// Appends the `size` bytes that `packed` holds to `out`; the text of an error says what is wrong.
    pub(super) fn append(&mut self, packed: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let start = out.len();
        // A page of nulls has no values to compress, and some writers leave it at that.
        if size == 0 {
            return Ok(());
        }
        let done = match self.codec {
            CompressionCodec::SNAPPY => {
                // What the bytes claim is asked before anything is written.
                let claimed = snap::raw::decompress_len(packed).map_err(|e| e.to_string())?;
                if claimed != size {
                    return Err(unequal(claimed, size));
                }
                into(out, size, |room| snap::raw::Decoder::new().decompress(packed, room).map_err(|e| e.to_string()))
            }
            CompressionCodec::GZIP => stream(flate2::read::MultiGzDecoder::new(packed), size, out),
            CompressionCodec::BROTLI => brotli(packed, size, out),
            CompressionCodec::LZ4_RAW => into(out, size, |room| raw(packed, room)),
            CompressionCodec::LZ4 => lz4(packed, size, out),
            CompressionCodec::ZSTD => {
                let decoder = match &mut self.zstd {
                    Some(decoder) => decoder,
                    none => none.insert(zstd::bulk::Decompressor::new().map_err(|e| e.to_string())?),
                };
                into(out, size, |room| decoder.decompress_to_buffer(packed, room).map_err(|e| e.to_string()))
            }
            // Of the first there is nothing to unpack, and whoever has the bytes gives them on as they are.
            codec @ (CompressionCodec::UNCOMPRESSED | CompressionCodec::LZO) => Err(format!("{codec:?} is not unpacked")),
        };
        done?;
        let found = out.len() - start;
        if found == size { Ok(()) } else { Err(unequal(found, size)) }
    }
}

fn unequal(found: usize, size: usize) -> String {
    let more = if found > size { "more than the" } else { "fewer than the" };
    format!("a page unpacks to {more} {size} bytes it claims")
}

/// Runs a decoder that fills a slice of the size that is claimed.
fn into(out: &mut Vec<u8>, size: usize, run: impl FnOnce(&mut [u8]) -> Result<usize, String>) -> Result<(), String> {
    let start = out.len();
    out.resize(start + size, 0);
    let written = run(out.get_mut(start..).unwrap_or_default())?;
    out.truncate(start + written);
    Ok(())
}

/// Reads one byte more than is claimed at most.
fn stream(decoder: impl Read, size: usize, out: &mut Vec<u8>) -> Result<(), String> {
    out.reserve_exact(size);
    decoder.take(size as u64 + 1).read_to_end(out).map(drop).map_err(|e| e.to_string())
}

fn brotli(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
    // A window of up to a gigabyte, which no page needs: not of the format (RFC 7932, section 9.1), but decoders take it.
    if packed.first().is_some_and(|b| b & 0x7f == 0x11) {
        return Err("a Brotli window larger than the format has".to_owned());
    }
    stream(brotli_decompressor::Decompressor::new(packed, 4096), size, out)
}

fn raw(packed: &[u8], room: &mut [u8]) -> Result<usize, String> {
    lz4_flex::block::decompress_into(packed, room).map_err(|e| e.to_string())
}

/// LZ4 of the deprecated codec: blocks behind two big-endian lengths as Hadoop writes them, frames, or one bare block (Apache Parquet
/// format, `Compression.md`, LZ4). Nothing in the page says which.
fn lz4(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let start = out.len();
    if into(out, size, |room| hadoop(packed, room)).is_ok() && out.len() - start == size {
        return Ok(());
    }
    out.truncate(start);
    if packed.starts_with(&[0x04, 0x22, 0x4d, 0x18]) {
        return stream(lz4_flex::frame::FrameDecoder::new(packed), size, out);
    }
    into(out, size, |room| raw(packed, room))
}

fn hadoop(mut packed: &[u8], room: &mut [u8]) -> Result<usize, String> {
    let mut at = 0;
    while !packed.is_empty() {
        let short = || "an LZ4 block that is cut".to_owned();
        let (lengths, rest) = packed.split_first_chunk::<8>().ok_or_else(short)?;
        let [a, b, c, d, e, f, g, h] = *lengths;
        let (size, len) = (u32::from_be_bytes([a, b, c, d]) as usize, u32::from_be_bytes([e, f, g, h]) as usize);
        let (block, after) = rest.split_at_checked(len).ok_or_else(short)?;
        let target = room.get_mut(at..).and_then(|room| room.get_mut(..size)).ok_or_else(|| unequal(usize::MAX, at))?;
        if raw(block, target)? != size {
            return Err(short());
        }
        at += size;
        packed = after;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    const TEXT: &[u8] = b"a page of text, a page of text, a page of text";
    /// A megabyte of zeros, by the encoder of Google.
    const BROTLI_ZEROS: &[u8] = &[0x5b, 0xff, 0xff, 0x8f, 0x7f, 0x02, 0x20, 0x1e, 0x0b, 0x04, 0x72, 0xef, 0x1f, 0x00];
    const MEGABYTE: usize = 1 << 20;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// As Hadoop writes it, in blocks of at most `step` bytes.
    fn hadoop_blocks(text: &[u8], step: usize) -> Vec<u8> {
        let blocks = text.chunks(step).flat_map(|part| {
            let packed = lz4_flex::block::compress(part);
            [&(part.len() as u32).to_be_bytes()[..], &(packed.len() as u32).to_be_bytes(), &packed].concat()
        });
        blocks.collect()
    }

    fn lz4_frame(text: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(vec![]);
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(codec: CompressionCodec, packed: &[u8], size: usize) -> Result<Vec<u8>, String> {
        let mut out = b"levels".to_vec();
        Unpack::new(codec).append(packed, size, &mut out)?;
        // Nothing was held that was not claimed.
        assert!(out.capacity() <= 2 * (size + 64), "{} for {size}", out.capacity());
        Ok(out.split_off(6))
    }

    /// Every codec and what it makes of a text, from codecs that have an encoder here.
    fn all(text: &[u8]) -> Vec<(CompressionCodec, Vec<u8>)> {
        use CompressionCodec as C;
        vec![
            (C::SNAPPY, snap::raw::Encoder::new().compress_vec(text).unwrap()),
            (C::GZIP, gzip(text)),
            (C::GZIP, [gzip(&text[..text.len() / 2]), gzip(&text[text.len() / 2..])].concat()),
            (C::LZ4_RAW, lz4_flex::block::compress(text)),
            (C::LZ4, hadoop_blocks(text, text.len())),
            (C::LZ4, hadoop_blocks(text, text.len().div_ceil(3))),
            (C::LZ4, lz4_frame(text)),
            (C::LZ4, lz4_flex::block::compress(text)),
            (C::ZSTD, zstd::bulk::compress(text, 3).unwrap()),
        ]
    }

    #[test]
    fn pages_unpack_to_what_they_claim_and_to_nothing_else() {
        for (codec, packed) in all(TEXT) {
            assert_eq!(unpacked(codec, &packed, TEXT.len()).as_deref(), Ok(TEXT), "{codec:?}");
            assert!(unpacked(codec, &packed, TEXT.len() - 1).is_err(), "{codec:?}");
            assert!(unpacked(codec, &packed, TEXT.len() + 1).is_err(), "{codec:?}");
            assert!(unpacked(codec, &packed[..packed.len() - 6], TEXT.len()).is_err(), "{codec:?}");
        }
        assert_eq!(unpacked(CompressionCodec::GZIP, b"", 0), Ok(vec![]));
        assert!(unpacked(CompressionCodec::LZO, b"x", 1).is_err());
    }

    #[test]
    fn bombs_stop_at_what_they_claim() {
        for (codec, packed) in all(&vec![0; MEGABYTE]).into_iter().chain([(CompressionCodec::BROTLI, BROTLI_ZEROS.to_vec())]) {
            assert_eq!(unpacked(codec, &packed, MEGABYTE).map(|out| out.len()), Ok(MEGABYTE), "{codec:?}");
            let mut out = vec![];
            assert!(Unpack::new(codec).append(&packed, 1_000, &mut out).is_err(), "{codec:?}");
            assert!(out.capacity() < 8_192, "{codec:?} held {}", out.capacity());
        }
        // A window of a gigabyte.
        let error = unpacked(CompressionCodec::BROTLI, &[0x11, 0x1e, 0x00], 10).unwrap_err();
        assert!(error.contains("window"), "{error}");
    }

    proptest! {
        #[test]
        fn hostile_bytes_end_within_what_they_claim(
            of in 0_usize..9, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8), size in 0_usize..200,
        ) {
            let (codec, mut packed) = all(TEXT).swap_remove(of);
            for (at, byte) in changes {
                let at = at.index(packed.len());
                packed[at] = byte;
            }
            if let Ok(out) = unpacked(codec, &packed, size) {
                prop_assert_eq!(out.len(), size);
            }
            let _ = unpacked(CompressionCodec::BROTLI, &packed, size);
        }
    }
}
