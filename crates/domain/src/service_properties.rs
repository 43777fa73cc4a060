//! The properties of a service of an account. Every request looks at them, so they are kept in
//! memory once read.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use holdfast_store::Fault;
use serde::{Deserialize, Serialize};

use crate::account::{
    CorsRule, DeleteRetention, Logging, Metrics, ProtocolSettings, ServiceKind, ServiceProperties,
    StaticWebsite,
};
use crate::domain::{Domain, read};
use crate::failure::Failure;
use crate::names::AccountName;
use crate::rows::{self, Stored};

impl Stored for ServiceProperties {
    const FORMAT: u8 = 3;
    const WHAT: &'static str = "the properties of a service";

    fn decode_earlier(format: u8, row: &[u8]) -> Option<Result<Self, postcard::Error>> {
        (format == 2).then(|| postcard::from_bytes(row).map(|earlier: Format2| earlier.into()))
    }
}

/// As they were before the File service had settings for the security of SMB.
#[derive(Serialize, Deserialize)]
struct Format2 {
    logging: Logging,
    hour_metrics: Metrics,
    minute_metrics: Metrics,
    cors: Vec<CorsRule>,
    default_version: Option<String>,
    delete_retention: DeleteRetention,
    static_website: StaticWebsite,
    protocols: (Option<bool>, Option<bool>, Option<bool>),
    has_retained: bool,
}

impl From<Format2> for ServiceProperties {
    fn from(earlier: Format2) -> Self {
        let (smb_multichannel, smb_encryption_required, nfs_encryption_required) =
            earlier.protocols;
        Self {
            logging: earlier.logging,
            hour_metrics: earlier.hour_metrics,
            minute_metrics: earlier.minute_metrics,
            cors: earlier.cors,
            default_version: earlier.default_version,
            delete_retention: earlier.delete_retention,
            static_website: earlier.static_website,
            protocols: ProtocolSettings {
                smb_multichannel,
                smb_encryption_required,
                nfs_encryption_required,
                ..ProtocolSettings::default()
            },
            has_retained: earlier.has_retained,
        }
    }
}

/// Bounded by the accounts that are served, four for each.
#[derive(Default)]
pub(crate) struct PropertiesCache {
    /// Held from before a commit until its result is known here, so that of two changes the one
    /// that is stored last is also known last.
    changing: tokio::sync::Mutex<()>,
    /// Replaced as a whole when something is set or read for the first time, so that reading it writes no
    /// memory that threads share.
    by_account: ArcSwap<BTreeMap<AccountName, ByService>>,
}

/// In the order of [`ServiceKind`].
type ByService = [Option<Arc<ServiceProperties>>; 4];

impl PropertiesCache {
    fn change(
        &self,
        account: &AccountName,
        service: ServiceKind,
        change: impl Fn(&mut Option<Arc<ServiceProperties>>),
    ) {
        self.by_account.rcu(|known| {
            let mut known = BTreeMap::clone(known);
            change(&mut known.entry(account.clone()).or_default()[service as usize]);
            known
        });
    }
}

impl Domain {
    pub async fn service_properties(
        &self,
        account: &AccountName,
        service: ServiceKind,
    ) -> Result<Arc<ServiceProperties>, Fault> {
        self.with_service_properties(account, service, Arc::clone).await
    }

    /// Returns what `look` makes of them. A reference to keep would change a count that all threads
    /// share.
    pub async fn with_service_properties<T>(
        &self,
        account: &AccountName,
        service: ServiceKind,
        look: impl FnOnce(&Arc<ServiceProperties>) -> T,
    ) -> Result<T, Fault> {
        let known = &self.properties_cache;
        if let Some(of_account) = known.by_account.load().get(account)
            && let Some(properties) = &of_account[service as usize]
        {
            return Ok(look(properties));
        }
        let key = rows::service_properties(account.as_str(), service as u8);
        let row = self.engine.snapshot().await?.get(&key).await?;
        let stored = row.map(|row| ServiceProperties::decode(&row)).transpose()?;
        let stored = Arc::new(stored.unwrap_or_default());
        // If another request has set or read them meanwhile, its values are at least as new.
        known.change(account, service, |known| {
            known.get_or_insert_with(|| Arc::clone(&stored));
        });
        let now_known = known.by_account.load();
        let newest = now_known.get(account).and_then(|known| known[service as usize].as_ref());
        Ok(look(newest.unwrap_or(&stored)))
    }

    /// Changes the properties by `change`, which gets those that are stored.
    pub async fn set_service_properties(
        &self,
        account: &AccountName,
        service: ServiceKind,
        change: impl Fn(&mut ServiceProperties),
    ) -> Result<(), Failure<std::convert::Infallible>> {
        let key = rows::service_properties(account.as_str(), service as u8);
        let _only_one = self.properties_cache.changing.lock().await;
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
        let changed = Some(Arc::new(changed));
        self.properties_cache.change(account, service, |known| known.clone_from(&changed));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_build_stored_is_read() {
        let earlier = Format2 {
            logging: Logging::default(),
            hour_metrics: Metrics::default(),
            minute_metrics: Metrics::default(),
            cors: Vec::new(),
            default_version: Some("2019-12-12".to_owned()),
            delete_retention: DeleteRetention { days: Some(7), allow_permanent_delete: false },
            static_website: StaticWebsite::default(),
            protocols: (Some(true), None, Some(false)),
            has_retained: true,
        };
        let row = postcard::to_extend(&earlier, vec![2]).expect("it serializes");
        let read = ServiceProperties::decode(&row).expect("a row of format 2");
        assert_eq!(read, earlier.into());
        assert_eq!(read.protocols.smb_multichannel, Some(true));
        assert_eq!(read.protocols.smb_versions, None);
        assert_eq!(ServiceProperties::decode(&read.encode()).expect("a row"), read);
    }
}
