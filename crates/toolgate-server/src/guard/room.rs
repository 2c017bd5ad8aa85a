//! How many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of places. Who finds none is told so at once; nobody waits.
#[derive(Clone)]
pub(crate) struct Room {
    taken: Arc<AtomicUsize>,
    places: usize,
}

/// A place, until it is dropped.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Room {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            taken: Arc::default(),
            places,
        }
    }

    pub(super) fn enter(&self) -> Option<Place> {
        self.enter_before(self.places)
    }

    /// If there is no room: how many places the caller shares with others. The last quarter is for the operator.
    pub(super) fn enter_as(&self, is_full: bool) -> Result<Place, usize> {
        let last = match is_full {
            true => self.places,
            false => self.places - self.places / 4,
        };
        self.enter_before(last).ok_or(last)
    }

    /// Only one of the first places.
    fn enter_before(&self, last: usize) -> Option<Place> {
        let place = Place(Arc::clone(&self.taken));
        let before = self.taken.fetch_add(1, Ordering::Relaxed);
        (before < last).then_some(place)
    }

    /// How many places are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub(crate) fn places(&self) -> usize {
        self.places
    }
}

/// Places of which a caller who may not use everything has a share at most. All such callers together leave one share free,
/// for the operator.
pub(super) struct Shares {
    all: Room,
    share: usize,
    /// By [`Caller::number`](super::Caller::number).
    of_each: Vec<Room>,
}

/// A place in [`Shares`], and one in the caller's own share.
#[derive(Default)]
pub(super) struct Places(#[expect(dead_code, reason = "held, not read")] Vec<Place>);

impl Shares {
    /// Numbers of callers are up to `callers`.
    pub(super) fn new(places: usize, share: usize, callers: usize) -> Self {
        Self {
            all: Room::new(places),
            share,
            of_each: (0..=callers).map(|_| Room::new(share)).collect(),
        }
    }

    /// If there is no room: how many the caller may have.
    pub(super) fn enter(&self, number: u64, is_full: bool) -> Result<Places, usize> {
        let most = self.all.places();
        if is_full {
            let place = self.all.enter().ok_or(most)?;
            return Ok(Places(vec![place]));
        }
        let own = usize::try_from(number).ok();
        let own = own.and_then(|number| self.of_each.get(number)?.enter());
        let all = self.all.enter_before(most - self.share);
        match (own, all) {
            (Some(own), Some(all)) => Ok(Places(vec![own, all])),
            _ => Err(self.share),
        }
    }

    /// How many places are taken.
    pub(super) fn taken(&self) -> usize {
        self.all.taken()
    }
}

impl From<Place> for Places {
    fn from(place: Place) -> Self {
        Self(vec![place])
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_places_and_they_come_back() {
        let room = Room::new(2);
        let first = room.enter();
        let second = room.enter();
        assert!(first.is_some() && second.is_some() && room.enter().is_none());
        assert_eq!(room.taken(), 2, "who found none has taken none");
        drop(first);
        assert!(room.enter().is_some());
    }

    #[test]
    fn nobody_takes_more_than_a_share_and_the_last_one_is_the_operators() {
        const OPERATOR: u64 = 1;
        let shares = Shares::new(4, 1, 5);
        let mut taken = Vec::new();
        for (number, expected) in [(2, true), (2, false), (3, true), (4, true), (5, false)] {
            let places = shares.enter(number, false);
            assert_eq!(places.is_ok(), expected, "{number}");
            taken.extend(places);
        }
        assert_eq!(shares.taken(), 3, "who found none has taken none");
        let operators = shares.enter(OPERATOR, true);
        assert!(operators.is_ok() && shares.enter(OPERATOR, true).is_err());
        drop(taken.remove(0));
        assert!(shares.enter(2, false).is_err(), "one share stays free");
        drop(operators);
        assert!(shares.enter(2, false).is_ok());
        assert!(shares.enter(99, false).is_err(), "nobody has that number");
    }
}
