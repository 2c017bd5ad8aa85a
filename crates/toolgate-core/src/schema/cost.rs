//! What a validation can cost at worst, found out without running one.
//!
//! A validator visits, for each value of an instance, every sub-schema that applies to it: the one at that place, what its
//! references and combinators add, and so on down. A schema of 2 KB can make that 2³⁰ visits. The [rehearsal](super::rehearsal)
//! finds all places there are, and what a value costs in each; here an instance is led through them.

use std::collections::HashMap;

use serde_json::Value;

use super::SchemaError;
use super::rehearsal::Rehearsal;
use crate::SchemaLimits;
use crate::arguments::Size;

/// Errors worth remembering; each takes half a kilobyte.
pub(super) const MOST_ERRORS: u64 = 100_000;

/// Calls inside of each other that fit on the stack of a thread.
pub(super) const MOST_STACKED: u64 = 1_000;

/// The places a value of an instance can be in. The first is that of the whole instance.
#[derive(Debug)]
pub(super) struct Cost {
    places: Vec<Place>,
    /// The most of everything.
    worst: Price,
}

#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) price: Price,
    pub(super) named: HashMap<Box<str>, Option<usize>>,
    pub(super) other: Option<usize>,
    pub(super) name: Option<usize>,
    pub(super) tuple: Vec<Option<usize>>,
    pub(super) item: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Price {
    /// Of a value, whatever it is.
    pub(super) value: u64,
    /// Of each property or item.
    pub(super) member: u64,
    /// Of each byte of a text or of a property's name.
    pub(super) byte: u64,
    /// How often items are compared with each other.
    pub(super) unique: u64,
    pub(super) stacked: u64,
}

/// What validating one instance costs at most.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bill {
    pub(super) steps: u64,
    /// Checks that can fail; each would be an error to remember.
    pub(super) errors: u64,
    /// Calls inside of each other.
    pub(super) stacked: u64,
}

impl Cost {
    /// Refuses what can not be bounded, naming the keyword.
    pub(super) fn measure(document: &Value, limits: &SchemaLimits) -> Result<Self, SchemaError> {
        let places = Rehearsal::play(document, limits)?;
        let mut worst = Price::default();
        for Place { price, .. } in &places {
            worst.value = worst.value.max(price.value);
            worst.member = worst.member.max(price.member);
            worst.byte = worst.byte.max(price.byte);
            worst.unique = worst.unique.max(price.unique);
            worst.stacked = worst.stacked.max(price.stacked);
        }
        Ok(Self { places, worst })
    }

    /// The bill for an instance; a rough one if even that is small.
    pub(super) fn bill(&self, instance: &Value, size: Size) -> Bill {
        let worst = self.worst;
        // Every property has a name, which is a value too.
        let values = size.values.saturating_mul(2);
        let members = (worst.value.saturating_add(worst.member)).saturating_mul(values);
        let unique = worst.unique.saturating_mul(values.saturating_mul(values));
        let bytes = worst.byte.saturating_mul(size.bytes);
        let stacked = worst.stacked.saturating_mul(size.depth);
        let rough = members.saturating_add(unique).saturating_add(bytes);
        let mut bill = Bill {
            steps: rough,
            errors: rough,
            stacked,
        };
        if rough > MOST_ERRORS || stacked > MOST_STACKED {
            bill = Bill::default();
            self.add(&mut bill, instance, Some(0), 0);
        }
        bill
    }

    fn add(&self, bill: &mut Bill, value: &Value, place: Option<usize>, stacked: u64) {
        let Some(place) = place.and_then(|number| self.places.get(number)) else {
            return;
        };
        let price = place.price;
        let stacked = stacked + price.stacked;
        bill.stacked = bill.stacked.max(stacked);
        bill.errors = bill.errors.saturating_add(price.value);
        bill.pay(price.value, 1);
        match value {
            Value::String(text) => bill.pay(price.byte, text.len()),
            Value::Array(items) => {
                bill.pay(price.member, items.len());
                if price.unique > 0 {
                    bill.pay(price.unique, comparisons(value, items));
                }
                let at = |index| place.tuple.get(index).copied().unwrap_or(place.item);
                for (index, item) in items.iter().enumerate() {
                    self.add(bill, item, at(index), stacked);
                }
            }
            Value::Object(properties) => {
                let of_names = place.name.and_then(|number| self.places.get(number));
                let of_names = of_names.map(|place| place.price).unwrap_or_default();
                bill.errors = bill.errors.saturating_add(of_names.value);
                for (name, value) in properties {
                    bill.pay(price.member.saturating_add(of_names.value), 1);
                    bill.pay(price.byte.saturating_add(of_names.byte), name.len());
                    let at = place.named.get(name.as_str()).copied();
                    self.add(bill, value, at.unwrap_or(place.other), stacked);
                }
            }
            _ => {}
        }
    }
}

impl Bill {
    fn pay(&mut self, price: u64, times: usize) {
        let sum = price.saturating_mul(times as u64);
        self.steps = self.steps.saturating_add(sum);
    }
}

/// Scalars are told apart by their hash. That of nested values can be the same for all of them, so that each is compared
/// with every other.
fn comparisons(array: &Value, items: &[Value]) -> usize {
    let is_nested = |item: &Value| item.is_array() || item.is_object();
    let values = || Size::of(array, usize::MAX).unwrap_or_default().values as usize;
    if items.iter().any(is_nested) {
        items.len().saturating_mul(values())
    } else {
        items.len()
    }
}
