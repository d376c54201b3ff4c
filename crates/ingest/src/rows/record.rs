//! One row put together from its columns, as JSON. Must stop at a row that is too long, and at levels that contradict each other.

use super::leaf::{Leaf, quoted};
use super::shape::Node;
use parquet::errors::ParquetError;

/// Why a row cannot be put together.
pub(super) enum Stop {
    Parquet(ParquetError),
    /// A column has too few values, or its levels contradict those of the others.
    Levels(usize),
    Long,
}

impl From<ParquetError> for Stop {
    fn from(error: ParquetError) -> Self {
        Self::Parquet(error)
    }
}

/// Puts one row together.
pub(super) struct Write<'a> {
    pub(super) leaves: &'a mut [Leaf],
    pub(super) out: &'a mut Vec<u8>,
    /// Longest that `out` may become, in bytes.
    pub(super) most: usize,
}

impl Write<'_> {
    pub(super) fn row(&mut self, tree: &Node) -> Result<(), Stop> {
        self.node(tree)?;
        for (at, leaf) in self.leaves.iter_mut().enumerate() {
            if leaf.repeats()? != 0 {
                return Err(Stop::Levels(at));
            }
        }
        Ok(())
    }

    fn leaf(&mut self, at: usize) -> Result<&mut Leaf, Stop> {
        self.leaves.get_mut(at).ok_or(Stop::Levels(0))
    }

    fn node(&mut self, node: &Node) -> Result<(), Stop> {
        if self.out.len() > self.most {
            return Err(Stop::Long);
        }
        match node {
            Node::Leaf(at) => {
                let leaf = self.leaves.get_mut(*at).ok_or(Stop::Levels(0))?;
                if !leaf.write(self.out)? {
                    return Err(Stop::Levels(*at));
                }
            }
            Node::Optional { level, leaf, inner } => match self.leaf(*leaf)?.level()? {
                None => return Err(Stop::Levels(*leaf)),
                Some(found) if found >= *level => self.node(inner)?,
                Some(_) => {
                    self.out.extend_from_slice(b"null");
                    self.pass(inner)?;
                }
            },
            Node::List { level, repeats, leaf, inner } => match self.leaf(*leaf)?.level()? {
                None => return Err(Stop::Levels(*leaf)),
                Some(found) if found >= *level => {
                    self.out.push(b'[');
                    loop {
                        self.node(inner)?;
                        if self.leaf(*leaf)?.repeats()? < *repeats {
                            break;
                        }
                        self.out.push(b',');
                    }
                    self.out.push(b']');
                }
                Some(_) => {
                    self.out.extend_from_slice(b"[]");
                    self.pass(inner)?;
                }
            },
            Node::Object(fields) => {
                self.out.push(b'{');
                for (index, (name, field)) in fields.iter().enumerate() {
                    if index > 0 {
                        self.out.push(b',');
                    }
                    quoted(name, self.out);
                    self.out.push(b':');
                    self.node(field)?;
                }
                self.out.push(b'}');
            }
        }
        if self.out.len() > self.most { Err(Stop::Long) } else { Ok(()) }
    }

    /// Goes past the one level that each column under a field that is not there has.
    fn pass(&mut self, node: &Node) -> Result<(), Stop> {
        match node {
            Node::Leaf(at) => Ok(self.leaf(*at)?.pass()?),
            Node::Optional { inner, .. } | Node::List { inner, .. } => self.pass(inner),
            Node::Object(fields) => fields.iter().try_for_each(|(_, field)| self.pass(field)),
        }
    }
}
