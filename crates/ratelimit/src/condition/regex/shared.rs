//! The automata that are in use, by their expression.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::Automaton;

/// Automata by expression. Those that no rule uses any more are removed from time to time.
#[derive(Default)]
struct Automata {
    by_text: HashMap<Box<str>, Weak<Automaton>>,
    /// Number of entries at which unused ones are removed.
    sweep_at: usize,
}

/// Fewest entries at which unused ones are removed.
const MIN_SWEEP: usize = 256;

static AUTOMATA: Mutex<Option<Automata>> = Mutex::new(None);

/// Returns the automaton of `text` that is in use, or else compiles it. No lock is held meanwhile.
pub(super) fn find_or_compile(
    text: &str,
    compile: impl FnOnce() -> Result<Automaton, String>,
) -> Result<Arc<Automaton>, String> {
    if let Some(found) = with_automata(|automata| automata.find(text)) {
        return Ok(found);
    }
    let compiled = Arc::new(compile()?);
    Ok(with_automata(|automata| automata.insert(text, compiled)))
}

fn with_automata<T>(work: impl FnOnce(&mut Automata) -> T) -> T {
    let mut automata = AUTOMATA.lock().unwrap_or_else(PoisonError::into_inner);
    work(automata.get_or_insert_default())
}

// === impl Automata ===

impl Automata {
    fn find(&self, text: &str) -> Option<Arc<Automaton>> {
        self.by_text.get(text).and_then(Weak::upgrade)
    }

    /// Adds an automaton, unless another thread has added one meanwhile; returns the one in use.
    fn insert(&mut self, text: &str, compiled: Arc<Automaton>) -> Arc<Automaton> {
        if let Some(found) = self.find(text) {
            return found;
        }
        if self.by_text.len() >= self.sweep_at.max(MIN_SWEEP) {
            self.by_text.retain(|_, automaton| automaton.strong_count() > 0);
            self.sweep_at = 2 * self.by_text.len();
        }
        self.by_text.insert(text.into(), Arc::downgrade(&compiled));
        compiled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn automaton(text: &str) -> Arc<Automaton> {
        Arc::new(Automaton::new(text).unwrap())
    }

    #[test]
    fn unused_automata_are_removed() {
        let mut automata = Automata::default();
        let used: Vec<_> =
            (0..200).map(|i| automata.insert(&format!("used {i}"), automaton("a"))).collect();
        for i in 0..2_000 {
            automata.insert(&format!("unused {i}"), automaton("a"));
        }
        assert!(automata.by_text.len() <= 2 * used.len() + MIN_SWEEP, "{}", automata.by_text.len());
        for (i, used) in used.iter().enumerate() {
            let found = automata.find(&format!("used {i}")).unwrap();
            assert!(Arc::ptr_eq(&found, used), "{i}");
        }
        assert!(automata.find("unused 0").is_none());
    }
}
