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
        let place = Place(Arc::clone(&self.taken));
        let before = self.taken.fetch_add(1, Ordering::Relaxed);
        (before < self.places).then_some(place)
    }

    /// How many places are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub(crate) fn places(&self) -> usize {
        self.places
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
}
