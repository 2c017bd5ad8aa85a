//! How many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ServeSettings;

/// Places for requests or streams. Half of them are dealt out: every token has as many of its own, which nobody else can take.
/// The others are for whoever comes first, the last quarter of those for tokens that may use everything. Who finds no place is told so
/// at once; nobody waits.
pub(crate) struct Rooms {
    /// By [`Caller::number`](super::Caller::number).
    own: Vec<Room>,
    common: Room,
    places: usize,
}

struct Room {
    taken: Arc<AtomicUsize>,
    places: usize,
}

/// A place, until it is dropped.
pub(crate) struct Place {
    taken: Arc<AtomicUsize>,
    size: usize,
}

impl Rooms {
    pub(crate) fn new(places: usize, settings: &ServeSettings) -> Self {
        // `serve.token` has the number 1, the first of `serve.tokens` 2; without any, everybody has 0.
        let tokens = settings.tokens.iter().map(|token| &*token.token);
        let tokens = std::iter::once(&*settings.token).chain(tokens);
        let mut is_caller: Vec<bool> = tokens.map(|token| !token.is_empty()).collect();
        is_caller.insert(0, !is_caller.contains(&true));
        let callers = is_caller.iter().filter(|is_caller| **is_caller).count();
        let share = places / 2 / callers;
        let own = is_caller.iter();
        Self {
            own: own
                .map(|is_caller| Room::new(if *is_caller { share } else { 0 }))
                .collect(),
            common: Room::new(places - share * callers),
            places,
        }
    }

    /// If there is no room: how many places the caller may have.
    pub(super) fn enter(&self, number: u64, is_full: bool) -> Result<Place, usize> {
        self.enter_with(number, is_full, 1)
    }

    /// The same for what takes several places at once.
    pub(super) fn enter_with(
        &self,
        number: u64,
        is_full: bool,
        size: usize,
    ) -> Result<Place, usize> {
        let own = usize::try_from(number).ok();
        let own = own.and_then(|number| self.own.get(number));
        let common = self.common.places;
        let most = match is_full {
            true => common,
            false => common - common / 4,
        };
        own.and_then(|own| own.enter(own.places, size))
            .or_else(|| self.common.enter(most, size))
            .ok_or_else(|| own.map_or(0, |own| own.places) + most)
    }

    pub(crate) fn taken(&self) -> usize {
        let own = self.own.iter().map(Room::taken);
        own.sum::<usize>() + self.common.taken()
    }

    /// True if whoever has taken the places of its own gets no more.
    pub(crate) fn is_crowded(&self) -> bool {
        self.common.taken() >= self.common.places
    }

    pub(crate) fn places(&self) -> usize {
        self.places
    }
}

impl Room {
    fn new(places: usize) -> Self {
        Self {
            taken: Arc::default(),
            places,
        }
    }

    /// Only one of the first places.
    fn enter(&self, most: usize, size: usize) -> Option<Place> {
        let taken = Arc::clone(&self.taken);
        let before = taken.fetch_add(size, Ordering::Relaxed);
        let place = Place { taken, size };
        (before + size <= most).then_some(place)
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.size, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const OPERATOR: u64 = 1;

    fn rooms(places: usize, tokens: usize) -> Rooms {
        let token = |name: String| json!({ "token": name, "allow": ["echo"] });
        let tokens: Vec<_> = (0..tokens).map(|n| token(format!("token-{n}"))).collect();
        let token = if tokens.is_empty() { "" } else { "all" };
        let settings = json!({ "token": token, "tokens": tokens });
        Rooms::new(places, &serde_json::from_value(settings).unwrap())
    }

    fn fill(rooms: &Rooms, number: u64, is_full: bool) -> Vec<Place> {
        std::iter::from_fn(|| rooms.enter(number, is_full).ok()).collect()
    }

    #[test]
    fn there_are_so_many_places_and_they_come_back() {
        for places in [1, 2, 7] {
            let rooms = rooms(places, 0);
            let mut held = fill(&rooms, 0, true);
            assert_eq!((held.len(), rooms.taken()), (places, places));
            assert_eq!(rooms.enter(0, true).err(), Some(places));
            assert!(rooms.is_crowded());
            held.pop();
            assert!(!rooms.is_crowded() && rooms.enter(0, true).is_ok());
        }
    }

    #[test]
    fn whoever_takes_all_it_gets_leaves_every_other_token_its_own_places() {
        // 8 for each of four tokens, and 32 for all.
        for (first, is_full, most) in [(2, false, 8 + 24), (OPERATOR, true, 8 + 32)] {
            let rooms = rooms(64, 3);
            let held = fill(&rooms, first, is_full);
            assert_eq!(held.len(), most);
            assert_eq!(rooms.enter(first, is_full).err(), Some(most));
            for other in [3, 4] {
                assert_eq!(fill(&rooms, other, false).len(), 8, "{first}, {other}");
            }
            assert_eq!(rooms.taken(), most, "who found none has taken none");
        }
    }

    #[test]
    fn the_last_quarter_of_what_is_common_is_the_operators() {
        let rooms = rooms(64, 3);
        let held: Vec<_> = (2..=4).flat_map(|n| fill(&rooms, n, false)).collect();
        assert_eq!(held.len(), 3 * 8 + 24);
        assert_eq!(fill(&rooms, OPERATOR, true).len(), 8 + 8);
        assert_eq!(
            rooms.enter(99, false).err(),
            Some(24),
            "nobody has that number"
        );
    }
}
