//! The properties of a share, as headers and in listings.

use holdfast_domain::share::{
    AccessTier, Protocol, QUOTA_GIB_MAX, RootSquash, Share, ShareSettings,
};
use holdfast_domain::time::Timestamp;

use super::parameters::{boolean, choice, choice_name, number};
use crate::answer::Answer;
use crate::error::Error;
use crate::headers::resource_headers::{lease_duration, lease_state, lease_status};
use crate::request::Call;
use crate::version::Version;

const TIERS: [(&str, AccessTier); 4] = [
    ("TransactionOptimized", AccessTier::TransactionOptimized),
    ("Hot", AccessTier::Hot),
    ("Cool", AccessTier::Cool),
    ("Premium", AccessTier::Premium),
];
const PROTOCOLS: [(&str, Protocol); 2] = [("SMB", Protocol::Smb), ("NFS", Protocol::Nfs)];
const ROOT_SQUASHES: [(&str, RootSquash); 3] = [
    ("NoRootSquash", RootSquash::NoRootSquash),
    ("RootSquash", RootSquash::RootSquash),
    ("AllSquash", RootSquash::AllSquash),
];

const QUOTA: &str = "x-ms-share-quota";
const TIER: &str = "x-ms-access-tier";
const ROOT_SQUASH: &str = "x-ms-root-squash";
const SNAPSHOTS_SHOWN: &str = "x-ms-enable-snapshot-virtual-directory-access";
const DIRECTORY_LEASES: &str = "x-ms-enable-smb-directory-lease";
const IOPS: &str = "x-ms-share-provisioned-iops";
const BANDWIDTH: &str = "x-ms-share-provisioned-bandwidth-mibps";
const BURSTING: &str = "x-ms-share-paid-bursting-enabled";
const BURSTING_IOPS: &str = "x-ms-share-paid-bursting-max-iops";
const BURSTING_BANDWIDTH: &str = "x-ms-share-paid-bursting-max-bandwidth-mibps";

pub fn protocol(call: &Call<'_>) -> Result<Protocol, Error> {
    Ok(choice(call, "x-ms-enabled-protocols", &PROTOCOLS)?.unwrap_or_default())
}

pub fn settings(call: &Call<'_>) -> Result<ShareSettings, Error> {
    Ok(ShareSettings {
        quota_gib: quota(call)?,
        tier: tier(call)?,
        root_squash: choice(call, ROOT_SQUASH, &ROOT_SQUASHES)?,
        snapshots_shown: boolean(call, SNAPSHOTS_SHOWN)?,
        directory_leases: boolean(call, DIRECTORY_LEASES)?,
        provisioned_iops: number(call, IOPS)?,
        provisioned_bandwidth_mibps: number(call, BANDWIDTH)?,
        bursting: boolean(call, BURSTING)?,
        bursting_iops_max: number(call, BURSTING_IOPS)?,
        bursting_bandwidth_mibps_max: number(call, BURSTING_BANDWIDTH)?,
    })
}

fn quota(call: &Call<'_>) -> Result<Option<u32>, Error> {
    let Some(quota) = number(call, QUOTA)? else { return Ok(None) };
    let fits = u32::try_from(quota).ok().filter(|quota| (1..=QUOTA_GIB_MAX).contains(quota));
    fits.map(Some).ok_or_else(|| Error::invalid_header(QUOTA, quota.to_string()))
}

fn tier(call: &Call<'_>) -> Result<Option<AccessTier>, Error> {
    let tier = choice(call, TIER, &TIERS)?;
    if tier == Some(AccessTier::Premium) && call.version < Version::V2025_01_05 {
        return Err(Error::invalid_header(TIER, "Premium"));
    }
    Ok(tier)
}

/// A property of a share as clients see it: the names of its header and of its element in listings, and
/// its value.
pub struct ShownProperty {
    pub header: &'static str,
    pub element: &'static str,
    pub value: String,
}

/// All properties in the version of the request, except ETag and time.
pub fn shown_properties(share: &Share, version: Version, now: Timestamp) -> Vec<ShownProperty> {
    let mut shown = Vec::new();
    let mut tell = |since: Version, header, element, value: Option<String>| {
        if let Some(value) = value.filter(|_| version >= since) {
            shown.push(ShownProperty { header, element, value });
        }
    };
    let text = |text: &str| Some(text.to_owned());
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let boolean = |value: bool| (if value { "true" } else { "false" }).to_owned();
    tell(Version::V2015_02_21, QUOTA, "Quota", Some(share.quota_gib.to_string()));
    let tiers = Version::V2019_12_12;
    tell(tiers, TIER, "AccessTier", text(choice_name(&TIERS, &share.tier)));
    let changed = share.tier_changed.map(|change| change.at.rfc1123().to_string());
    tell(tiers, "x-ms-access-tier-change-time", "AccessTierChangeTime", changed);
    let pending = share.tier_changed.and_then(|change| change.pending_from(now)).map(pending_from);
    tell(tiers, "x-ms-access-tier-transition-state", "AccessTierTransitionState", pending);
    let leases = Version::V2020_02_10;
    tell(leases, "x-ms-lease-status", "LeaseStatus", text(lease_status(&share.lease, now)));
    tell(leases, "x-ms-lease-state", "LeaseState", text(lease_state(&share.lease, now)));
    let duration = lease_duration(&share.lease, now).map(str::to_owned);
    tell(leases, "x-ms-lease-duration", "LeaseDuration", duration);
    let protocols = Version::V2020_04_08;
    let protocol = text(choice_name(&PROTOCOLS, &share.protocol));
    tell(protocols, "x-ms-enabled-protocols", "EnabledProtocols", protocol);
    if share.protocol == Protocol::Nfs {
        let squash = text(choice_name(&ROOT_SQUASHES, &share.root_squash));
        tell(protocols, ROOT_SQUASH, "RootSquash", squash);
        let shown = Some(boolean(share.snapshots_shown));
        let element = "EnableSnapshotVirtualDirectoryAccess";
        tell(Version::V2023_08_03, SNAPSHOTS_SHOWN, element, shown);
    }
    let provisioned = Version::V2025_01_05;
    tell(provisioned, IOPS, "ProvisionedIops", number(share.provisioned.iops));
    let bandwidth = number(share.provisioned.bandwidth_mibps);
    tell(provisioned, BANDWIDTH, "ProvisionedBandwidthMiBps", bandwidth);
    let bursting = Version::V2024_11_04;
    let enabled = share.bursting.enabled.map(boolean);
    tell(bursting, BURSTING, "PaidBurstingEnabled", enabled);
    tell(bursting, BURSTING_IOPS, "PaidBurstingMaxIops", number(share.bursting.iops_max));
    let bandwidth = number(share.bursting.bandwidth_mibps_max);
    tell(bursting, BURSTING_BANDWIDTH, "PaidBurstingMaxBandwidthMibps", bandwidth);
    if share.protocol == Protocol::Smb {
        let leases = Some(boolean(share.directory_leases));
        tell(Version::V2026_10_06, DIRECTORY_LEASES, "EnableSmbDirectoryLease", leases);
    }
    shown
}

/// As the service reports a changed tier (azure-sdk-for-js, shareclient.spec.ts, and the other
/// SDKs): the name of the tier begins with a lower-case letter.
fn pending_from(tier: AccessTier) -> String {
    let mut name = choice_name(&TIERS, &tier).to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    format!("pending-from-{name}")
}

/// The provisioned throughput in answers to changes.
pub fn provisioned(answer: &mut Answer, share: &Share, version: Version) {
    if version < Version::V2025_01_05 {
        return;
    }
    answer.header(QUOTA, share.quota_gib.to_string());
    answer.optional_header(IOPS, share.provisioned.iops.map(|iops| iops.to_string()));
    let bandwidth = share.provisioned.bandwidth_mibps;
    answer.optional_header(BANDWIDTH, bandwidth.map(|bandwidth| bandwidth.to_string()));
}
