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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_depends_on_its_own_room_and_on_that_of_those_that_bind() {
        // (room, all have room): both, itself alone, the others alone, neither.
        let cases = [(true, true), (true, false), (false, true), (false, false)];
        let takes = |stake: Stake| cases.map(|(room, all)| stake.takes(room, all));
        assert_eq!(takes(Stake::Shared), [true, false, true, false]);
        assert_eq!(takes(Stake::Aside), [true, false, false, false]);
        assert_eq!(takes(Stake::Alone), [true, true, false, false]);
        assert_eq!(takes(Stake::Look), [false; 4]);
        assert_eq!(takes(Stake::Glance), [false; 4]);
    }

    #[test]
    fn a_check_stops_others_if_it_binds() {
        assert_eq!(Stake::ALL.map(Stake::binds), [true, true, false, false, false]);
        assert_eq!(Stake::ALL.map(Stake::is_bound), [true, false, true, false, false]);
        assert_eq!(Stake::ALL.map(Stake::is_question), [false, true, false, false, true]);
    }
}
