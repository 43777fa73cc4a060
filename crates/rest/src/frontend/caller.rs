//! Authentication and authorization of a request.

use holdfast_domain::access::StoredPolicy;
use holdfast_domain::blob::{Container, ContainerPath, ContainerRefusal};
use holdfast_domain::failure::Failure;
use holdfast_domain::names::{AccountName, ContainerName, TableName};
use holdfast_domain::table::{TablePath, TableRefusal};

use super::{Frontend, Peer};
use crate::address::{Address, Resource};
use crate::auth::{self, ClaimTexts, Granted, Identity, KeyFields, Presented};
use crate::connection::Parts;
use crate::error::{Code, Error};
use crate::file;
use crate::operation::Need;
use crate::queue;
use crate::service::Service;
use crate::version::Version;

impl Frontend {
    /// Authenticates the caller and authorizes the request; returns the restrictions that the
    /// operation must check.
    pub(crate) async fn authorize(
        &self,
        presented: &Presented<'_>,
        version: Version,
        address: &Address<'_>,
        need: &Need,
    ) -> Result<(Identity, Granted), Error> {
        if self.accounts().is_disabled(address.account) {
            return Err(Code::AccountIsDisabled.into());
        }
        let now = self.domain.now();
        let settings = &self.settings;
        let mut identity =
            auth::authenticate(presented, &settings.accounts, &settings.bearer, now)?;
        if let Identity::ServiceSas(sas) = &identity
            && let Some(policy_id) = &sas.policy_id
        {
            let named = |policy: &StoredPolicy| policy.id == *policy_id;
            let policies =
                Box::pin(self.stored_policies(address, sas.scope.table.as_deref())).await?;
            let policy = policies.into_iter().find(named);
            identity = Identity::ServiceSas(auth::resolve_policy(sas.clone(), policy, now)?);
        }
        if let Identity::UserDelegationSas(sas) = &mut identity {
            let known = Box::pin(self.delegator_claims(address, &sas.key)).await?;
            sas.give_roles(&settings.bearer, known);
        }
        let granted = auth::authorize(&identity, need, version, &presented.resource)?;
        if granted.public_access.is_some() {
            let container = Box::pin(self.container(address)).await?;
            let level = container.map(|container| container.public_access);
            auth::check_public_access(&granted, level, true)?;
        }
        Ok((identity, granted))
    }

    /// The claims of the token with which the maker of a signature got the key.
    async fn delegator_claims(
        &self,
        address: &Address<'_>,
        key: &KeyFields,
    ) -> Result<Option<ClaimTexts>, Error> {
        let account = AccountName::new(address.account)?;
        let known = self.domain.delegator(&account, &key.identity()).await?;
        Ok(known.map(|delegator| delegator.claims))
    }

    /// The stored access policies of the resource of the address, or of the table that a signature
    /// is for; none if it does not exist.
    async fn stored_policies(
        &self,
        address: &Address<'_>,
        table: Option<&str>,
    ) -> Result<Vec<StoredPolicy>, Error> {
        if let Some(table) = table {
            let account = AccountName::new(address.account)?;
            let path = TablePath { account, table: TableName::new(table)? };
            return match self.domain.get_table(&path).await {
                Ok(table) => Ok(table.policies),
                Err(Failure::Refused(TableRefusal::NotFound)) => Ok(Vec::new()),
                Err(failure) => Err(failure.into()),
            };
        }
        if let Resource::Queue { queue }
        | Resource::Messages { queue }
        | Resource::Message { queue, .. } = &address.resource
        {
            return queue::stored_policies(&self.domain, address.account, queue).await;
        }
        if let Resource::Share { share } | Resource::Path { share, .. } = &address.resource {
            return file::stored_policies(&self.domain, address.account, share).await;
        }
        let container = self.container(address).await?;
        Ok(container.map(|container| container.policies).unwrap_or_default())
    }

    /// The container that the address names, if it names one of the Blob service and it exists.
    async fn container(&self, address: &Address<'_>) -> Result<Option<Container>, Error> {
        let (Resource::Container { container } | Resource::Blob { container, .. }) =
            &address.resource
        else {
            return Ok(None);
        };
        let path = ContainerPath {
            account: AccountName::new(address.account)?,
            container: ContainerName::new(container.as_ref())?,
        };
        match self.domain.get_container(&path, None).await {
            Ok((container, _)) => Ok(Some(container)),
            Err(Failure::Refused(ContainerRefusal::NotFound)) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }
}

pub(super) fn presented<'a>(
    service: Service,
    peer: Peer,
    parts: &'a Parts,
    address: &'a Address<'a>,
    query: &'a [(String, String)],
    version: Version,
) -> Presented<'a> {
    Presented {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        path_style: address.path_style,
        query,
        headers: &parts.headers,
        version,
        tls: peer.tls,
        client_ip: peer.ip,
        resource: address.named_resource(service),
    }
}
