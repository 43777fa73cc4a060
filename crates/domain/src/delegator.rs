//! Users of a directory who got user delegation keys. A signature made with such a key names its
//! maker by two ids only; what else their token said, which roles may depend on, is kept here. A
//! newer token of the same user replaces what an older one said.

use std::collections::BTreeMap;
use std::convert::Infallible;

use holdfast_store::Fault;
use serde::{Deserialize, Serialize};

use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::names::AccountName;
use crate::rows::{self, Stored};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegator {
    /// The claims of the token that are texts.
    pub claims: BTreeMap<String, Vec<String>>,
}

impl Stored for Delegator {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a user who got a delegation key";
}

impl Domain {
    pub async fn delegator(
        &self,
        account: &AccountName,
        tenant_id: &str,
        object_id: &str,
    ) -> Result<Option<Delegator>, Fault> {
        let key = rows::delegator(account.as_str(), tenant_id, object_id);
        let row = self.engine.snapshot().await?.get(&key).await?;
        row.map(|row| Delegator::decode(&row)).transpose()
    }

    pub async fn note_delegator(
        &self,
        account: &AccountName,
        tenant_id: &str,
        object_id: &str,
        delegator: &Delegator,
    ) -> Result<(), Failure<Infallible>> {
        let key = rows::delegator(account.as_str(), tenant_id, object_id);
        self.transact(std::slice::from_ref(&key), async |mut transaction| {
            let stored: Option<Delegator> = read(&mut transaction, &key).await?;
            if stored.as_ref() != Some(delegator) {
                transaction.put(key.clone(), delegator.encode());
            }
            Ok(((), transaction))
        })
        .await
    }
}
