//! Fingerprint to slot, in one probe of one place in memory.
//!
//! Open addressing in which the home slot is proportional to the fingerprint, so that the slots are
//! sorted, with gaps. A search ends at the first larger fingerprint, a removal leaves no tombstone,
//! and growing is one sequential copy, so that the table can grow by a half at a time and leave
//! little memory unused.

use crate::{
    fingerprint::Fingerprint,
    slot::{Packed, Slot},
};

#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    /// Number of home slots; the rest hold entries that are pushed past the end.
    homes: u32,
    len: u32,
    /// Time of the last rebuild, in microseconds.
    rebuilt_at: u64,
}

impl Table {
    const MIN_HOMES: usize = 16;
    const SPARE: usize = 8;

    /// If a rebuild follows another one within this many microseconds, it evicts nothing.
    const SOON: u64 = 1_000_000;

    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(crate) fn get(&self, fingerprint: Fingerprint) -> Option<Packed> {
        self.find(fingerprint).ok().map(|i| self.slots[i].packed)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, fingerprint: Fingerprint) -> Option<&mut Packed> {
        let (wanted, home) = (fingerprint.get(), self.home(fingerprint.get()));
        // Four at once: their cache lines arrive together, and no branch is mispredicted.
        if let Some(few) = self.slots.get(home..).and_then(|slots| slots.first_chunk::<4>()) {
            let mut at = 4;
            for i in (0..4).rev() {
                at = if few[i].fingerprint == wanted { i } else { at };
            }
            if at < 4 {
                return Some(&mut self.slots[home + at].packed);
            }
            // It would be before any larger one, and before any gap.
            if few.iter().any(|slot| slot.fingerprint == 0 || slot.fingerprint > wanted) {
                return None;
            }
        }
        let i = self.find(fingerprint).ok()?;
        Some(&mut self.slots[i].packed)
    }

    /// Inserts a fingerprint that is not in the table.
    pub(crate) fn insert(&mut self, fingerprint: Fingerprint, packed: Packed, now: u64) {
        // Beyond a load of 80 %, searches get long.
        if u64::from(self.len) * 5 >= u64::from(self.homes) * 4 {
            self.rebuild(now);
        }
        let Err(at) = self.find(fingerprint) else {
            return;
        };
        let free = (at..self.slots.len()).find(|i| self.slots[*i].fingerprint == 0);
        let free = free.unwrap_or_else(|| self.add_slot());
        self.slots.copy_within(at..free, at + 1);
        self.slots[at] = Slot { fingerprint: fingerprint.get(), packed };
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, fingerprint: Fingerprint) {
        if let Ok(i) = self.find(fingerprint) {
            self.remove_at(i);
        }
    }

    /// Evicts the expired states among `count` slots from `from` on. Returns the index at which it
    /// stopped.
    pub(crate) fn sweep(&mut self, from: usize, count: usize, now: u64) -> usize {
        let mut i = if from < self.slots.len() { from } else { 0 };
        for _ in 0..count.min(self.slots.len()) {
            let slot = self.slots[i];
            let is_free = slot.fingerprint == 0;
            if !is_free && slot.packed.is_expired(now) {
                // The slot that moved here is examined next.
                self.remove_at(i);
            } else if is_free && i >= self.homes as usize || i + 1 == self.slots.len() {
                // Beyond the home slots, nothing follows a free slot.
                i = 0;
            } else {
                i += 1;
            }
        }
        i
    }

    #[inline]
    fn home(&self, fingerprint: u64) -> usize {
        ((u128::from(fingerprint) * u128::from(self.homes)) >> 64) as usize
    }

    /// Index of the fingerprint, or else the index to insert it at.
    #[inline(never)]
    fn find(&self, fingerprint: Fingerprint) -> Result<usize, usize> {
        let wanted = fingerprint.get();
        let home = self.home(wanted);
        for (i, slot) in self.slots.iter().enumerate().skip(home) {
            if slot.fingerprint == wanted {
                return Ok(i);
            }
            if slot.fingerprint == 0 || slot.fingerprint > wanted {
                return Err(i);
            }
        }
        Err(self.slots.len())
    }

    /// Adds a free slot beyond the home slots.
    #[cold]
    fn add_slot(&mut self) -> usize {
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(Self::SPARE);
        }
        self.slots.push(Slot::default());
        self.slots.len() - 1
    }

    fn remove_at(&mut self, mut hole: usize) {
        while let Some(next) = self.slots.get(hole + 1).copied() {
            // A slot at its home stays, and so does everything after it.
            if next.fingerprint == 0 || self.home(next.fingerprint) > hole {
                break;
            }
            self.slots[hole] = next;
            hole += 1;
        }
        self.slots[hole] = Slot::default();
        self.len -= 1;
    }

    /// Copies unexpired states into a table that is half as large again as necessary. A table that
    /// fills quickly also keeps expired states: subjects that return find their slots, and little
    /// is added within a second.
    fn rebuild(&mut self, now: u64) {
        let soon = now < self.rebuilt_at + Self::SOON;
        let kept = |slot: &&Slot| slot.fingerprint != 0 && (soon || !slot.packed.is_expired(now));
        let len = if soon { self.len() } else { self.slots.iter().filter(kept).count() };
        let homes = (len * 15 / 8).max(Self::MIN_HOMES);
        let slots = vec![Slot::default(); homes + Self::SPARE];
        let mut grown = Self { slots, homes: homes as u32, len: len as u32, rebuilt_at: now };
        let mut next = 0;
        for slot in self.slots.iter().filter(kept) {
            let at = grown.home(slot.fingerprint).max(next);
            if at == grown.slots.len() {
                grown.add_slot();
            }
            grown.slots[at] = *slot;
            next = at + 1;
        }
        *self = grown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts `count` subjects at `now` that all expire a microsecond later.
    fn fill(table: &mut Table, from: u64, count: u64, now: u64) {
        for i in from..from + count {
            let fingerprint = Fingerprint::from((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            table.insert(fingerprint, Packed::until(now), now);
        }
    }

    #[test]
    fn a_sweep_wraps_around() {
        let mut table = Table::default();
        fill(&mut table, 0, 5, 0);
        table.sweep(Table::MIN_HOMES, Table::SPARE, 1);
        assert!(table.len() < 5, "all five have expired, and none was evicted");
        // Even if the table has shrunk since.
        for from in [table.slots.len(), table.slots.len() + 1] {
            table.sweep(from, table.slots.len(), 1);
            assert_eq!(table.len(), 0);
        }
    }

    #[test]
    fn slots_beyond_the_homes_catch_what_is_pushed_off_the_end() {
        let mut table = Table::default();
        fill(&mut table, 0, 1_000, 0);
        assert_eq!(table.slots.len(), table.homes as usize + Table::SPARE);

        let mut table = Table::default();
        let last = |i: u64| Fingerprint::from(u64::MAX - i);
        for i in 0..100 {
            table.insert(last(i), Packed::until(i), 0);
        }
        assert!(table.slots.len() <= table.homes as usize + 100 + Table::SPARE);
        for i in 0..100 {
            assert_eq!(
                table.get(last(i)),
                Some(Packed::until(i)),
                "all of them have the last home"
            );
        }

        // A sweep that starts at the very last of them goes on at the first slot.
        let end = table.slots.len();
        assert_ne!(table.slots[end - 1].fingerprint, 0);
        assert_eq!(table.sweep(end - 1, end, 0), end - 1);
        let hand = table.sweep(end - 1, end, 100);
        table.sweep(hand, end, 100);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_subject_is_found_within_a_few_slots_of_its_home() {
        let mut table = Table::default();
        fill(&mut table, 0, 10_000, 0);
        assert!(table.slots.len() < 20_000, "{} slots for 10,000 subjects", table.slots.len());
        for (i, slot) in table.slots.iter().enumerate().filter(|(_, slot)| slot.fingerprint != 0) {
            let home = table.home(slot.fingerprint);
            assert!((home..home + 16).contains(&i), "slot {i}, home {home}");
        }
    }

    #[test]
    fn expired_states_are_evicted_only_if_the_table_fills_slowly() {
        let mut table = Table::default();
        fill(&mut table, 0, 1_000, Table::SOON);
        let quickly = 2 * Table::SOON - 1;
        fill(&mut table, 1_000, 1_000, quickly);
        assert_eq!(table.len(), 2_000, "all expired, and none evicted");

        let slowly = quickly + Table::SOON;
        let room = u64::from(table.homes) * 4 / 5 - 2_000;
        fill(&mut table, 2_000, room + 2, slowly);
        assert!(table.len() < 2_000, "{} are left of the expired ones", table.len());
    }

    #[test]
    fn a_table_is_rebuilt_only_a_few_times_while_it_grows() {
        let mut table = Table::default();
        let mut rebuilds = 0;
        for i in 0..1_000 {
            fill(&mut table, i, 1, i + 1);
            rebuilds += usize::from(table.rebuilt_at == i + 1);
        }
        assert_eq!(table.len(), 1_000);
        assert!(rebuilds <= 14, "{rebuilds}, although it grows by half each time");
    }
}
