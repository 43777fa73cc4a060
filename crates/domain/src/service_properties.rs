//! The properties of a service of an account. Every request looks at them, so they are kept in
//! memory once read.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_store::Fault;
use parking_lot::RwLock;

use crate::account::{ServiceKind, ServiceProperties};
use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::names::AccountName;
use crate::rows::{self, Stored};

impl Stored for ServiceProperties {
    const FORMAT: u8 = 2;
    const WHAT: &'static str = "the properties of a service";
}

/// Bounded by the accounts that are served, four for each.
#[derive(Default)]
pub(crate) struct KnownProperties {
    /// Held from before a commit until its result is known here, so that of two changes the one
    /// that is stored last is also known last.
    changing: tokio::sync::Mutex<()>,
    by_account: RwLock<BTreeMap<AccountName, ByService>>,
}

/// In the order of [`ServiceKind`].
type ByService = [Option<Arc<ServiceProperties>>; 4];

impl Domain {
    pub async fn service_properties(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<Arc<ServiceProperties>, Fault> {
        let known = &self.known_properties.by_account;
        let of_service = |known: &ByService| known[service as usize].clone();
        if let Some(properties) = known.read().get(account).and_then(of_service) {
            return Ok(properties);
        }
        let key = rows::service_properties(account.as_str(), service as u8);
        let row = self.engine.snapshot().await?.get(&key).await?;
        let stored = row.map(|row| ServiceProperties::decode(&row)).transpose()?;
        // If somebody has set or read them meanwhile, theirs are at least as new.
        let mut known = known.write();
        let known = &mut known.entry(account.clone()).or_default()[service as usize];
        Ok(Arc::clone(known.get_or_insert_with(|| Arc::new(stored.unwrap_or_default()))))
    }

    /// Changes the properties by `change`, which gets those that are stored.
    pub async fn set_service_properties(
        &self,
        account: &AccountName,
        service: ServiceKind,
        change: impl Fn(&mut ServiceProperties),
    ) -> Result<(), Failure<std::convert::Infallible>> {
        let key = rows::service_properties(account.as_str(), service as u8);
        let _only_one = self.known_properties.changing.lock().await;
        let changed = self
            .transact(std::slice::from_ref(&key), async |mut transaction| {
                let stored: Option<ServiceProperties> = read(&mut transaction, &key).await?;
                let mut properties = stored.unwrap_or_default();
                change(&mut properties);
                properties.has_retained |= properties.delete_retention.days.is_some();
                transaction.put(key.clone(), properties.encode());
                Ok((properties, transaction))
            })
            .await?;
        let mut known = self.known_properties.by_account.write();
        known.entry(account.clone()).or_default()[service as usize] = Some(Arc::new(changed));
        Ok(())
    }
}
