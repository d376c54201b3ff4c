//! The schema of a file as a tree that rows are put together by (the record assembly of the Dremel paper, Melnik et al. 2010).

use super::error::RowsError;
use parquet::basic::{ConvertedType, Repetition};
use parquet::schema::types::Type;
use std::path::Path;

/// Deepest nesting of fields.
const DEEPEST: usize = 32;
/// Most columns.
pub(super) const MOST_COLUMNS: usize = 4096;

/// One field.
#[derive(Debug)]
pub(super) enum Node {
    /// A column, by its number.
    Leaf(usize),
    /// Null below `level`.
    Optional {
        level: i16,
        leaf: usize,
        inner: Box<Node>,
    },
    /// Empty below `level`; goes on where the next value repeats at `repeats`.
    List {
        level: i16,
        repeats: i16,
        leaf: usize,
        inner: Box<Node>,
    },
    Object(Vec<(String, Node)>),
}

/// Builds the tree; leaves are numbered in the order of the columns.
pub(super) fn tree(root: &Type, path: &Path) -> Result<Node, RowsError> {
    let mut build = Build { leaves: 0, path };
    let fields = root.get_fields().iter().map(|field| Ok((field.name().to_owned(), build.field(field, 0, 0, 0)?)));
    let fields = fields.collect::<Result<Vec<_>, RowsError>>()?;
    Ok(Node::Object(fields))
}

struct Build<'a> {
    leaves: usize,
    path: &'a Path,
}

impl Build<'_> {
    fn field(&mut self, field: &Type, level: i16, repeats: i16, depth: usize) -> Result<Node, RowsError> {
        if depth > DEEPEST {
            return Err(RowsError::too_large(self.path, "levels of nesting", depth as u64, DEEPEST as u64));
        }
        let leaf = self.leaves;
        let info = field.get_basic_info();
        let repetition = if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED };
        Ok(match repetition {
            Repetition::REQUIRED => self.inner(field, level, repeats, depth)?,
            Repetition::OPTIONAL => {
                let inner = Box::new(self.inner(field, level + 1, repeats, depth)?);
                Node::Optional { level: level + 1, leaf, inner }
            }
            Repetition::REPEATED => {
                let inner = Box::new(self.inner(field, level + 1, repeats + 1, depth)?);
                Node::List { level: level + 1, repeats: repeats + 1, leaf, inner }
            }
        })
    }

    fn inner(&mut self, field: &Type, level: i16, repeats: i16, depth: usize) -> Result<Node, RowsError> {
        if field.is_primitive() {
            self.leaves += 1;
            if self.leaves > MOST_COLUMNS {
                return Err(RowsError::too_large(self.path, "columns", self.leaves as u64, MOST_COLUMNS as u64));
            }
            return Ok(Node::Leaf(self.leaves - 1));
        }
        let children = field.get_fields();
        if children.is_empty() {
            return Err(RowsError::damaged(self.path, format!("group `{}` has no field", field.name())));
        }
        let list = matches!(field.get_basic_info().converted_type(), ConvertedType::LIST)
            || matches!(field.get_basic_info().logical_type_ref(), Some(parquet::basic::LogicalType::List));
        let map = matches!(field.get_basic_info().converted_type(), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE)
            || matches!(field.get_basic_info().logical_type_ref(), Some(parquet::basic::LogicalType::Map));
        if (list || map)
            && let [repeated] = children
            && repeated.get_basic_info().has_repetition()
            && repeated.get_basic_info().repetition() == Repetition::REPEATED
        {
            // Three levels: the middle one has no name of its own. Two levels (older writers): it is the item itself.
            if list && !repeated.is_primitive() && is_wrapper(repeated, field.name()) {
                let leaf = self.leaves;
                let [item] = repeated.get_fields() else { return Err(RowsError::damaged(self.path, "a list without items")) };
                let inner = Box::new(self.field(item, level + 1, repeats + 1, depth + 1)?);
                return Ok(Node::List { level: level + 1, repeats: repeats + 1, leaf, inner });
            }
            return self.field(repeated, level, repeats, depth + 1);
        }
        let mut fields = Vec::with_capacity(children.len());
        for child in children {
            fields.push((child.name().to_owned(), self.field(child, level, repeats, depth + 1)?));
        }
        Ok(Node::Object(fields))
    }
}

/// Whether a repeated group only wraps the item of its list (backward compatibility rules of the Parquet format, LogicalTypes.md).
fn is_wrapper(repeated: &Type, list: &str) -> bool {
    let name = repeated.name();
    repeated.get_fields().len() == 1 && name != "array" && name != format!("{list}_tuple")
}
