//! Security codes and boards.

use std::fmt;

/// A six-digit security code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code([u8; 6]);

impl Code {
    /// Parses six ASCII digits.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; 6] = text.as_bytes().try_into().ok()?;
        bytes.iter().all(u8::is_ascii_digit).then_some(Self(bytes))
    }

    /// The six digits.
    pub fn as_str(&self) -> &str {
        // ASCII digits by construction.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Board of the code; `None` for codes of no known board (engine E4).
    pub fn board(self) -> Option<Board> {
        Board::of(self)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Board of the Chinese exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the field's own names")]
pub enum Board {
    ShMain,
    SzMain,
    ChiNext,
    Star,
    Bse,
}

impl Board {
    /// All boards.
    pub const ALL: [Self; 5] = [Self::ShMain, Self::SzMain, Self::ChiNext, Self::Star, Self::Bse];

    /// Board by code prefix (engine E4).
    pub fn of(code: Code) -> Option<Self> {
        let text = code.as_str();
        Some(match &text[..3] {
            "600" | "601" | "603" | "605" => Self::ShMain,
            "688" | "689" => Self::Star,
            "000" | "001" | "002" | "003" => Self::SzMain,
            "300" | "301" | "302" => Self::ChiNext,
            _ => match &text[..2] {
                "43" | "83" | "87" | "88" | "92" => Self::Bse,
                _ => return None,
            },
        })
    }

    /// Name shown to agents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ShMain => "SH main",
            Self::SzMain => "SZ main",
            Self::ChiNext => "ChiNext",
            Self::Star => "STAR",
            Self::Bse => "BSE",
        }
    }

    /// Prefix of masked codes on this board.
    pub const fn alias_prefix(self) -> &'static str {
        match self {
            Self::ShMain => "SHM",
            Self::SzMain => "SZM",
            Self::ChiNext => "GEM",
            Self::Star => "STAR",
            Self::Bse => "BSE",
        }
    }
}
