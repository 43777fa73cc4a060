//! The properties of a service of an account. Every request looks at them, so they are kept in
//! memory once read.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_store::Fault;
use parking_lot::RwLock;
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
