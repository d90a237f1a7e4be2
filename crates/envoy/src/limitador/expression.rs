//! Conditions of limitador: the part of CEL that can be a condition of a rule, and the syntax of
//! limitador before CEL, `key == value`.

mod parser;
mod token;

pub(super) use self::parser::parse;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Text(String),
    Integer(i64),
    Boolean(bool),
    List(Vec<Expression>),
    /// The value of an entry.
    Entry(EntryName),
    /// All entries of the descriptor at this index.
    Descriptor(u64),
    /// `target.name(arguments)` or `name(arguments)`; the target is the first argument.
    Call(String, Vec<Expression>),
    Not(Box<Expression>),
    All(Box<[Expression; 2]>),
    Any(Box<[Expression; 2]>),
    Compare(Comparison, Box<[Expression; 2]>),
}

/// An entry of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryName {
    /// Index of the descriptor; `None` in limits from before CEL, which do not name one.
    pub(super) descriptor: Option<u64>,
    pub(super) key: String,
}

/// An operator that compares two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

// === impl Comparison ===

impl Comparison {
    /// Returns the comparison that holds where this one does not.
    pub(super) const fn negated(self) -> Option<Self> {
        Some(match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Less => Self::GreaterOrEqual,
            Self::LessOrEqual => Self::Greater,
            Self::Greater => Self::LessOrEqual,
            Self::GreaterOrEqual => Self::Less,
            Self::In => return None,
        })
    }

    /// Returns the comparison with its sides exchanged.
    pub(super) const fn flipped(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            other => other,
        }
    }
}
