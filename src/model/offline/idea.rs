//! A plain repair of a line, and what kind it is of.

/// The kind of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Repair {
    /// `<` for `<=`.
    Bound,
    /// `==` for `!=`.
    Equality,
    /// `<` for `>`.
    Direction,
    /// A number one more or less.
    Number,
    /// Two digits exchanged.
    Digits,
    /// `+` for `-`.
    Sign,
    /// `*` for `/`.
    Factor,
    /// `&&` for `||`.
    Logic,
    /// A negation more or less.
    Negation,
    /// The column beside it.
    Column,
    /// The name that was meant.
    Name,
    /// Two arguments exchanged.
    Arguments,
    /// A step of one that is too much.
    Step,
    /// A step of one that is missing.
    NoStep,
    /// A string of the same kind.
    Text,
    /// `true` for `false`.
    Truth,
}

/// A repair of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Idea {
    pub(super) repair: Repair,
    /// The bytes of the line that it replaces.
    pub(super) span: (usize, usize),
    pub(super) new: String,
}
