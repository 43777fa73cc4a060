//! Roles and their assignments.
//!
//! An assignment gives a role to everybody whose token has certain claims, in one account, or in one
//! container, queue, table or share of it. Only `Principal::roles_at` compares assignments with
//! requests. Without an assignment a token allows nothing.

use std::collections::BTreeMap;

use super::{NamedResource, authorize::action_matches};
use crate::service::Service;

/// The claims of a token: names, each with its texts. An object id is `oid` here, whatever claim of
/// the token has it.
pub type ClaimTexts = BTreeMap<String, Vec<String>>;

/// The actions of a built-in role of the service, by its name there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    pub name: &'static str,
    /// After [`ACTION_PREFIX`](crate::operation::ACTION_PREFIX); `*` stands for any text.
    pub actions: &'static [&'static str],
}

impl Role {
    /// For servers that accept every token: this role cannot be assigned.
    pub(super) const EVERYTHING: Self = Self { name: "everything", actions: &["*"] };

    pub fn built_in(name: &str) -> Option<Self> {
        BUILT_IN.iter().copied().find(|role| role.name.eq_ignore_ascii_case(name))
    }

    /// Every role that can be assigned, in the order of the documentation.
    pub fn all() -> &'static [Self] {
        BUILT_IN
    }

    pub(super) fn allows(&self, action: &str) -> bool {
        self.actions.iter().any(|pattern| action_matches(pattern, action))
    }
}

const BUILT_IN: &[Role] = &[
    Role {
        name: "Storage Blob Data Owner",
        actions: &["blobServices/containers/*", "blobServices/generateUserDelegationKey/action"],
    },
    Role {
        name: "Storage Blob Data Contributor",
        actions: &[
            "blobServices/containers/read",
            "blobServices/containers/write",
            "blobServices/containers/delete",
            "blobServices/containers/blobs/read",
            "blobServices/containers/blobs/write",
            "blobServices/containers/blobs/delete",
            "blobServices/containers/blobs/add/action",
            "blobServices/containers/blobs/move/action",
            "blobServices/generateUserDelegationKey/action",
        ],
    },
    Role {
        name: "Storage Blob Data Reader",
        actions: &[
            "blobServices/containers/read",
            "blobServices/containers/blobs/read",
            "blobServices/generateUserDelegationKey/action",
        ],
    },
    Role {
        name: "Storage Blob Delegator",
        actions: &["blobServices/generateUserDelegationKey/action"],
    },
    Role {
        name: "Storage Queue Data Contributor",
        actions: &[
            "queueServices/queues/read",
            "queueServices/queues/write",
            "queueServices/queues/delete",
            "queueServices/queues/messages/read",
            "queueServices/queues/messages/write",
            "queueServices/queues/messages/delete",
            "queueServices/queues/messages/process/action",
        ],
    },
    Role {
        name: "Storage Queue Data Reader",
        actions: &["queueServices/queues/read", "queueServices/queues/messages/read"],
    },
    Role {
        name: "Storage Queue Data Message Processor",
        actions: &[
            "queueServices/queues/messages/read",
            "queueServices/queues/messages/process/action",
        ],
    },
    Role {
        name: "Storage Queue Data Message Sender",
        actions: &["queueServices/queues/messages/add/action"],
    },
    Role {
        name: "Storage Queue Delegator",
        actions: &["queueServices/generateUserDelegationKey/action"],
    },
    Role {
        name: "Storage Table Data Contributor",
        actions: &[
            "tableServices/tables/read",
            "tableServices/tables/write",
            "tableServices/tables/delete",
            "tableServices/tables/entities/*",
        ],
    },
    Role {
        name: "Storage Table Data Reader",
        actions: &["tableServices/tables/read", "tableServices/tables/entities/read"],
    },
    Role {
        name: "Storage File Data Privileged Contributor",
        actions: &[
            "fileServices/fileshares/files/*",
            "fileServices/readFileBackupSemantics/action",
            "fileServices/writeFileBackupSemantics/action",
        ],
    },
    Role {
        name: "Storage File Data Privileged Reader",
        actions: &[
            "fileServices/fileshares/files/read",
            "fileServices/readFileBackupSemantics/action",
        ],
    },
    Role {
        name: "Storage File Delegator",
        actions: &["fileServices/generateUserDelegationKey/action"],
    },
    // Roles for the management of accounts: services, containers, queues, tables and shares, but
    // not their contents.
    Role {
        name: "Storage Account Contributor",
        actions: &[
            "blobServices/read",
            "blobServices/write",
            "blobServices/containers/read",
            "blobServices/containers/write",
            "blobServices/containers/delete",
            "blobServices/containers/getAcl/action",
            "blobServices/containers/setAcl/action",
            "blobServices/generateUserDelegationKey/action",
            "queueServices/read",
            "queueServices/write",
            "queueServices/queues/read",
            "queueServices/queues/write",
            "queueServices/queues/delete",
            "queueServices/queues/getAcl/action",
            "queueServices/queues/setAcl/action",
            "queueServices/generateUserDelegationKey/action",
            "tableServices/read",
            "tableServices/write",
            "tableServices/tables/read",
            "tableServices/tables/write",
            "tableServices/tables/delete",
            "tableServices/tables/getAcl/action",
            "tableServices/tables/setAcl/action",
            "fileServices/read",
            "fileServices/write",
            "fileServices/shares/*",
            "fileServices/generateUserDelegationKey/action",
        ],
    },
];

/// Who has which role where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The claims that a token must have, each with its text.
    pub who: Vec<(String, String)>,
    pub role: Role,
    pub scope: AssignmentScope,
}

/// Where a role counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssignmentScope {
    /// `None` for every account.
    pub account: Option<String>,
    /// Only in one container, queue, table or share.
    pub container: Option<(Service, String)>,
}

impl Assignment {
    pub(super) fn is_for(&self, claims: &ClaimTexts) -> bool {
        let has = |(name, text): &(String, String)| {
            claims.get(name).is_some_and(|texts| texts.contains(text))
        };
        self.who.iter().all(has)
    }
}

impl AssignmentScope {
    pub(super) fn is_in_account(&self, account: &str) -> bool {
        self.account.as_ref().is_none_or(|own| own == account)
    }

    pub(super) fn covers(&self, target: &NamedResource<'_>) -> bool {
        let within = |(service, name): &(Service, String)| {
            *service == target.service
                && target.container.is_some_and(|it| is_same(*service, it, name))
        };
        self.is_in_account(target.account) && self.container.as_ref().is_none_or(within)
    }
}

/// Names of tables are compared without case.
pub(super) fn is_same(service: Service, one: &str, other: &str) -> bool {
    match service {
        Service::Table => one.eq_ignore_ascii_case(other),
        Service::Blob | Service::Queue | Service::File => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operation;

    fn target<'a>(
        account: &'a str,
        service: Service,
        container: Option<&'a str>,
    ) -> NamedResource<'a> {
        NamedResource { account, service, container, object: None }
    }

    #[test]
    fn every_action_that_an_operation_needs_is_given_by_a_role() {
        for operation in Operation::all() {
            for action in operation.row().need.actions.any_of.iter().copied().flatten() {
                let given = Role::all().iter().any(|role| role.allows(action));
                assert!(given, "{}: {action}", operation.as_str());
            }
        }
    }

    #[test]
    fn a_role_counts_in_its_account_and_container_only() {
        let in_container = Some((Service::Blob, "pictures".to_owned()));
        let in_table = Some((Service::Table, "People".to_owned()));
        for (account, container, asked, expected) in [
            (None, None, target("any", Service::Blob, Some("c")), true),
            (Some("mine"), None, target("mine", Service::Blob, None), true),
            (Some("mine"), None, target("other", Service::Blob, Some("c")), false),
            (Some("mine"), in_container.clone(), target("mine", Service::Blob, None), false),
            (
                Some("mine"),
                in_container.clone(),
                target("mine", Service::Blob, Some("pictures")),
                true,
            ),
            (
                Some("mine"),
                in_container.clone(),
                target("mine", Service::Blob, Some("Pictures")),
                false,
            ),
            (
                Some("mine"),
                in_container.clone(),
                target("mine", Service::File, Some("pictures")),
                false,
            ),
            (Some("mine"), in_container, target("other", Service::Blob, Some("pictures")), false),
            (Some("mine"), in_table, target("mine", Service::Table, Some("people")), true),
        ] {
            let scope = AssignmentScope { account: account.map(str::to_owned), container };
            assert_eq!(scope.covers(&asked), expected, "{scope:?} {asked:?}");
        }
    }

    #[test]
    fn a_role_is_for_whoever_has_all_the_claims() {
        let claims = ClaimTexts::from([
            ("oid".to_owned(), vec!["o".to_owned()]),
            ("groups".to_owned(), vec!["g".to_owned(), "h".to_owned()]),
        ]);
        for (who, expected) in [
            (vec![("oid", "o")], true),
            (vec![("groups", "h")], true),
            (vec![("oid", "o"), ("groups", "g")], true),
            (vec![("oid", "o"), ("groups", "x")], false),
            (vec![("oid", "O")], false),
            (vec![("upn", "o")], false),
        ] {
            let who: Vec<_> =
                who.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
            let assignment =
                Assignment { who, role: Role::EVERYTHING, scope: AssignmentScope::default() };
            assert_eq!(assignment.is_for(&claims), expected, "{assignment:?}");
        }
    }
}
