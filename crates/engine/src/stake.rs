//! What a check has to do with the others of its batch.

/// What a check has to do with the others of its batch, when something is to be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stake {
    /// It takes together with the others, or none of them does.
    #[default]
    Shared,
    /// It is only asked, and takes nothing; its refusal stops the others all the same.
    Look,
    /// It takes if it has room and those that share do; its refusal stops nobody.
    Aside,
    /// It takes if it has room, whatever the others say; its refusal stops nobody.
    Alone,
    /// It is only asked, takes nothing and stops nobody.
    Glance,
}

impl Stake {
    /// Every stake.
    pub const ALL: [Self; 5] = [Self::Shared, Self::Look, Self::Aside, Self::Alone, Self::Glance];

    /// Whether its refusal stops others.
    pub const fn binds(self) -> bool {
        matches!(self, Self::Shared | Self::Look)
    }

    /// Whether others' refusals stop it.
    pub const fn is_bound(self) -> bool {
        matches!(self, Self::Shared | Self::Aside)
    }

    /// Whether it is only asked.
    pub const fn is_question(self) -> bool {
        matches!(self, Self::Look | Self::Glance)
    }

    /// Whether it takes, once it is known whether it has room and whether all that bind have.
    pub const fn takes(self, room: bool, all_have_room: bool) -> bool {
        match self {
            Self::Shared => all_have_room,
            Self::Look | Self::Glance => false,
            Self::Aside => room && all_have_room,
            Self::Alone => room,
        }
    }
}
