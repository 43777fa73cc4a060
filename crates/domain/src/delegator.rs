//! User delegation keys that were given out. A signature made with such a key names its user by two ids
//! only; the other claims of the user's token, which roles may depend on, are kept here for each key
//! until it expires.

use std::collections::BTreeMap;
use std::convert::Infallible;

use bytes::Bytes;
use holdfast_store::{Fault, KeyRange, Order};
use serde::{Deserialize, Serialize};

use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::names::AccountName;
use crate::rows::{self, Stored};
use crate::time::Timestamp;

/// How many expired keys of the user are removed when a new one is given out: more than one, so that
/// their number falls.
const FORGOTTEN_AT_ONCE: usize = 16;

/// A key, identified by the fields that a signature repeats.
#[derive(Clone, Debug)]
pub struct DelegationKey<'key> {
    pub tenant_id: &'key str,
    pub object_id: &'key str,
    pub expiry: Timestamp,
    /// Start, service, version and whatever else there is.
    pub other_fields: String,
}

impl DelegationKey<'_> {
    fn row(&self, account: &AccountName) -> Bytes {
        let user = rows::delegation_keys(account.as_str(), self.tenant_id, self.object_id);
        rows::delegation_key(&user, self.expiry, &self.other_fields)
    }
}

/// The user who got a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegator {
    /// The claims of the token that are texts.
    pub claims: BTreeMap<String, Vec<String>>,
}

impl Stored for Delegator {
    const FORMAT: u8 = 1;
    const WHAT: &'static str = "a user who got a delegation key";
}

impl Delegator {
    /// What both tokens said. Keys requested within the same second for the same times are the same,
    /// no matter who asked for them in the name of the user.
    fn agreeing_with(&self, other: &Self) -> Self {
        let claims = self.claims.iter().filter_map(|(name, texts)| {
            let others = other.claims.get(name)?;
            let both: Vec<_> = texts.iter().filter(|text| others.contains(text)).cloned().collect();
            (!both.is_empty()).then(|| (name.clone(), both))
        });
        Self { claims: claims.collect() }
    }
}

impl Domain {
    /// Who got the key; `None` if that is not known.
    pub async fn delegator(
        &self,
        account: &AccountName,
        key: &DelegationKey<'_>,
    ) -> Result<Option<Delegator>, Fault> {
        let row = self.engine.snapshot().await?.get(&key.row(account)).await?;
        row.map(|row| Delegator::decode(&row)).transpose()
    }

    pub async fn note_delegator(
        &self,
        account: &AccountName,
        key: &DelegationKey<'_>,
        delegator: &Delegator,
    ) -> Result<(), Failure<Infallible>> {
        let row = key.row(account);
        let user = rows::delegation_keys(account.as_str(), key.tenant_id, key.object_id);
        let live = rows::delegation_key(&user, self.now(), "");
        let expired = KeyRange::prefix(user).ending_before(live);
        self.transact(std::slice::from_ref(&row), async |mut transaction| {
            // Expired keys are not used any more, so they need no expectation.
            let snapshot = transaction.snapshot();
            for row in snapshot.scan(&expired, Order::Ascending, FORGOTTEN_AT_ONCE).await? {
                transaction.delete(row.key);
            }
            let stored: Option<Delegator> = read(&mut transaction, &row).await?;
            let kept = match &stored {
                Some(stored) => stored.agreeing_with(delegator),
                None => delegator.clone(),
            };
            if stored.as_ref() != Some(&kept) {
                transaction.put(row.clone(), kept.encode());
            }
            Ok(((), transaction))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delegator(claims: &[(&str, &[&str])]) -> Delegator {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let claims = claims.iter().map(|(name, values)| ((*name).to_owned(), texts(values)));
        Delegator { claims: claims.collect() }
    }

    #[test]
    fn two_tokens_agree_in_what_both_say() {
        let one = delegator(&[("oid", &["u"]), ("appid", &["a"]), ("groups", &["1", "2"])]);
        let other = delegator(&[("oid", &["u"]), ("appid", &["b"]), ("groups", &["2", "3"])]);
        let both = delegator(&[("oid", &["u"]), ("groups", &["2"])]);
        assert_eq!(one.agreeing_with(&other), both);
        assert_eq!(other.agreeing_with(&one), both);
        assert_eq!(one.agreeing_with(&one), one);
    }
}
