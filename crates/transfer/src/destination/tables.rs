//! Entities of tables, in transactions of one partition each.

use std::collections::BTreeMap;

use super::{Destination, Left};
use crate::edm::write_entity;
use crate::endpoint::Failure;
use crate::endpoint::tables::{Write, between};
use crate::model::Entity;
use crate::plan::{Decision, decide_entity};
use crate::report::Kind;

const BATCH_ENTITIES_MAX: usize = 100;
/// The service takes 4 MiB, of which a part is for what is around each entity.
const BATCH_BYTES_MAX: usize = 3 * 1024 * 1024;
const ENTITY_OVERHEAD_BYTES: usize = 1024;

/// Entities that can be written in one transaction each. They are in order of their keys.
pub fn batches(entities: Vec<Entity>) -> Vec<Vec<Entity>> {
    let mut batches: Vec<Vec<Entity>> = Vec::new();
    let mut bytes = 0;
    for entity in entities {
        let length = write_entity(&entity).len() + ENTITY_OVERHEAD_BYTES;
        bytes += length;
        match batches.last_mut() {
            Some(batch)
                if batch.len() < BATCH_ENTITIES_MAX
                    && bytes <= BATCH_BYTES_MAX
                    && batch[0].partition_key == entity.partition_key =>
            {
                batch.push(entity);
            }
            Some(_) | None => {
                batches.push(vec![entity]);
                bytes = length;
            }
        }
    }
    batches
}

fn what(table: &str, entity: &Entity) -> String {
    format!("entity ({:?}, {:?}) of table {table}", entity.partition_key, entity.row_key)
}

impl Destination {
    /// `is_fresh`: the table was made by this run, so that nothing is in it.
    pub async fn entities(&self, table: &str, batch: Vec<Entity>, is_fresh: bool) {
        if is_fresh && !self.is_dry {
            let all: Vec<_> = batch.iter().map(|entity| (entity, Write::Insert)).collect();
            if self.endpoint.write_entities(table, &all).await.is_ok() {
                self.report.sent_many(Kind::Entity, batch.len() as u64);
                return;
            }
        }
        let there = match self.entities_there(table, &batch, is_fresh).await {
            Ok(there) => there,
            Err(failure) => {
                let left = Left::from(failure);
                return batch.iter().for_each(|it| self.report.left(what(table, it), &left));
            }
        };
        let mut writes = Vec::new();
        for entity in &batch {
            match decide_entity(entity, there.get(&entity.row_key), self.rules) {
                Decision::Same | Decision::CompareContents => self.report.there(Kind::Entity),
                Decision::Send => writes.push((entity, Write::Insert)),
                Decision::Replace | Decision::ReplaceIfBegun(_) => {
                    writes.push((entity, Write::Replace))
                }
                Decision::Conflict(why) => {
                    self.report.left(what(table, entity), Left::Conflict(why));
                }
            }
        }
        if self.is_dry || writes.is_empty() {
            return self.report.sent_many(Kind::Entity, writes.len() as u64);
        }
        if self.endpoint.write_entities(table, &writes).await.is_ok() {
            return self.report.sent_many(Kind::Entity, writes.len() as u64);
        }
        // One by one, so that the one that is refused does not keep the others from being moved.
        for write in &writes {
            match self.endpoint.write_entities(table, std::slice::from_ref(write)).await {
                Ok(()) => self.report.sent(Kind::Entity),
                Err(failure) => self.report.left(what(table, write.0), Left::from(failure)),
            }
        }
    }

    /// Those of the batch that are there, by their row keys.
    async fn entities_there(
        &self,
        table: &str,
        batch: &[Entity],
        is_fresh: bool,
    ) -> Result<BTreeMap<String, Entity>, Failure> {
        let mut found = BTreeMap::new();
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok(found) };
        if is_fresh && self.is_dry {
            return Ok(found);
        }
        let wanted: std::collections::BTreeSet<&str> =
            batch.iter().map(|entity| entity.row_key.as_str()).collect();
        let (filter, mut after) = (between(first, last), None);
        loop {
            let page = self.endpoint.entities(table, Some(&filter), after.as_deref()).await?;
            for entity in page.items.into_iter().flatten() {
                if wanted.contains(entity.row_key.as_str()) {
                    found.insert(entity.row_key.clone(), entity);
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(found),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edm::Property;

    fn entity(partition: &str, row: usize, bytes: usize) -> Entity {
        let text = Property::String("x".repeat(bytes));
        Entity {
            partition_key: partition.to_owned(),
            row_key: format!("{row:04}"),
            properties: BTreeMap::from([("text".to_owned(), text)]),
        }
    }

    #[test]
    fn batch_ends_with_its_partition_its_count_and_its_bytes() {
        let mut entities: Vec<_> = (0..150).map(|row| entity("a", row, 1)).collect();
        entities.extend((0..5).map(|row| entity("b", row, 900 * 1024)));
        let lengths: Vec<_> = batches(entities).iter().map(Vec::len).collect();
        assert_eq!(lengths, [100, 50, 3, 2]);
    }
}
