//! Reading a card: one loader for JSON and YAML, and the published schema it checks against.

use super::{Card, CardError};
use crate::written::{self, Format};
use traderharness_contract::Document;

impl Card {
    /// The published schema of a card file, with the checker for it.
    ///
    /// # Errors
    /// [`CardError::Defect`], which no card causes.
    pub fn document() -> Result<Document, CardError> {
        Document::of::<Self>("the card").map_err(|fault| CardError::Defect { fault: fault.to_string() })
    }

    /// Reads a card and checks it. Tool names are checked by [`crate::Toolbox`], which knows them.
    ///
    /// # Errors
    /// [`CardError`] naming every faulty field with its path, what it accepts and, for a field that is not known, the closest name.
    pub fn read(text: &str, format: Format) -> Result<Self, CardError> {
        let value = written::read(text, format).map_err(|fault| CardError::Syntax { fault: fault.to_string() })?;
        let issues = Self::document()?.issues(&value);
        if !issues.is_empty() {
            return Err(CardError::Fields { issues });
        }
        let card: Self = serde_json::from_value(value).map_err(|fault| CardError::Syntax { fault: fault.to_string() })?;
        card.check()?;
        Ok(card)
    }

    /// Reads a card from JSON text and checks it.
    ///
    /// # Errors
    /// As [`Card::read`].
    pub fn from_json(text: &str) -> Result<Self, CardError> {
        Self::read(text, Format::Json)
    }

    /// Reads a card from YAML text and checks it.
    ///
    /// # Errors
    /// As [`Card::read`].
    pub fn from_yaml(text: &str) -> Result<Self, CardError> {
        Self::read(text, Format::Yaml)
    }
}
