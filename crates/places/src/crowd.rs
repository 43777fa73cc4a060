//! Connections whose places can be taken away, by address.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::{Address, Entry};

/// How many addresses are searched for an idle connection, to bound the cost of a new one.
const ADDRESSES_LOOKED_AT: usize = 16;
const ENTRIES_LOOKED_AT: usize = 256;

#[derive(Default)]
pub(crate) struct Crowd {
    /// Oldest first.
    by_address: HashMap<Address, BTreeMap<u64, Arc<Entry>>>,
    by_size: BTreeSet<(usize, Address)>,
}

impl Crowd {
    pub fn add(&mut self, entry: &Arc<Entry>) {
        self.change(entry.address, |entries| entries.insert(entry.number, Arc::clone(entry)));
    }

    pub fn remove(&mut self, entry: &Entry) {
        self.change(entry.address, |entries| entries.remove(&entry.number));
    }

    fn change<T>(
        &mut self,
        address: Address,
        change: impl FnOnce(&mut BTreeMap<u64, Arc<Entry>>) -> T,
    ) {
        let entries = self.by_address.entry(address).or_default();
        self.by_size.remove(&(entries.len(), address));
        change(entries);
        match entries.len() {
            0 => drop(self.by_address.remove(&address)),
            size => drop(self.by_size.insert((size, address))),
        }
    }

    pub fn oldest_of(&self, address: Address) -> Option<Arc<Entry>> {
        self.by_address.get(&address)?.values().next().cloned()
    }

    /// The oldest connection of the address that has the most.
    pub fn oldest(&self) -> Option<Arc<Entry>> {
        let (_, address) = self.by_size.last()?;
        self.oldest_of(*address)
    }

    /// Likewise, among idle connections.
    pub fn oldest_idle(&self) -> Option<Arc<Entry>> {
        let addresses = self.by_size.iter().rev().take(ADDRESSES_LOOKED_AT);
        let entries = addresses.filter_map(|(_, address)| self.by_address.get(address));
        let mut entries = entries.flat_map(|entries| entries.values().take(ENTRIES_LOOKED_AT));
        entries.find(|entry| !entry.works()).cloned()
    }
}
