//! The operations of the Table service.

use super::need::{ANY_SAS, Actions, CREATE, DELETE, LIST, Letters, NO_SAS, Need, READ, WRITE};
use super::row::{Comp, Restype, Row, Scope, Selector, Verbs};
use super::{Conditions, Operation, TableOperation};
use crate::version::Version;

const READ_SERVICE: Actions = &[&["tableServices/read"]];
const WRITE_SERVICE: Actions = &[&["tableServices/write"]];
const READ_TABLE: Actions = &[&["tableServices/tables/read"]];
const WRITE_TABLE: Actions = &[&["tableServices/tables/write"]];
const DELETE_TABLE: Actions = &[&["tableServices/tables/delete"]];
const READ_ENTITY: Actions = &[&["tableServices/tables/entities/read"]];
const DELETE_ENTITY: Actions = &[&["tableServices/tables/entities/delete"]];
const ADD_ENTITY: Actions =
    &[&["tableServices/tables/entities/write"], &["tableServices/tables/entities/add/action"]];
const UPDATE_ENTITY: Actions =
    &[&["tableServices/tables/entities/write"], &["tableServices/tables/entities/update/action"]];
const UPSERT_ENTITY: Actions = &[
    &["tableServices/tables/entities/write"],
    &["tableServices/tables/entities/add/action", "tableServices/tables/entities/update/action"],
];
const ADD: Letters = &["a"];
const UPDATE: Letters = &["u"];
const ADD_AND_UPDATE: Letters = &["au"];

const IF_MATCH: &[Selector] = &[Selector::Header("if-match")];

const fn service(operation: TableOperation, name: &'static str, verbs: Verbs, need: Need) -> Row {
    at(Scope::Service, operation, name, verbs, need).restype(Restype::Service)
}

const fn at(
    scope: Scope,
    operation: TableOperation,
    name: &'static str,
    verbs: Verbs,
    need: Need,
) -> Row {
    Row::new(Operation::Table(operation), name, verbs, scope, need).built()
}

/// A change of an entity that is named by its keys.
const fn entity(
    operation: TableOperation,
    name: &'static str,
    verbs: Verbs,
    letters: Letters,
    actions: Actions,
) -> Row {
    at(Scope::Entity, operation, name, verbs, Need::object(letters, actions)).success(&[204])
}

pub(super) const ROWS: &[Row] = &[
    at(
        Scope::Tables,
        TableOperation::QueryTables,
        "Query Tables",
        Verbs::GET,
        Need::container(LIST, READ_TABLE),
    ),
    at(
        Scope::Tables,
        TableOperation::CreateTable,
        "Create Table",
        Verbs::POST,
        Need::container(CREATE, WRITE_TABLE),
    )
    .success(&[201, 204]),
    at(
        Scope::TableEntry,
        TableOperation::DeleteTable,
        "Delete Table",
        Verbs::DELETE,
        Need::container(DELETE, DELETE_TABLE),
    )
    .success(&[204]),
    at(
        Scope::Table,
        TableOperation::QueryEntities,
        "Query Entities",
        Verbs::GET,
        Need::object(READ, READ_ENTITY),
    ),
    at(
        Scope::Entity,
        TableOperation::GetEntity,
        "Get Entity (point query)",
        Verbs::GET,
        Need::object(READ, READ_ENTITY),
    ),
    entity(TableOperation::UpdateEntity, "Update Entity", Verbs::PUT, UPDATE, UPDATE_ENTITY)
        .when(IF_MATCH)
        .conditions(Conditions::IF_MATCH),
    entity(
        TableOperation::MergeEntity,
        "Merge Entity",
        Verbs::MERGE_OR_PATCH,
        UPDATE,
        UPDATE_ENTITY,
    )
    .when(IF_MATCH)
    .conditions(Conditions::IF_MATCH),
    entity(TableOperation::DeleteEntity, "Delete Entity", Verbs::DELETE, DELETE, DELETE_ENTITY)
        .conditions(Conditions::IF_MATCH),
    at(
        Scope::Table,
        TableOperation::InsertEntity,
        "Insert Entity",
        Verbs::POST,
        Need::object(ADD, ADD_ENTITY),
    )
    .success(&[201, 204]),
    at(
        Scope::Table,
        TableOperation::GetTableAcl,
        "Get Table ACL",
        Verbs::GET_OR_HEAD,
        Need::container(NO_SAS, &[&["tableServices/tables/getAcl/action"]])
            .role_since(Version::V2025_07_05),
    )
    .comp(Comp::Acl)
    .since(Version::V2012_02_12),
    at(
        Scope::Table,
        TableOperation::SetTableAcl,
        "Set Table ACL",
        Verbs::PUT,
        Need::container(NO_SAS, &[&["tableServices/tables/setAcl/action"]])
            .role_since(Version::V2025_07_05),
    )
    .comp(Comp::Acl)
    .since(Version::V2012_02_12)
    .success(&[204]),
    service(
        TableOperation::SetTableServiceProperties,
        "Set Table Service Properties",
        Verbs::PUT,
        Need::service(WRITE, WRITE_SERVICE),
    )
    .comp(Comp::Properties)
    .success(&[202]),
    service(
        TableOperation::GetTableServiceProperties,
        "Get Table Service Properties",
        Verbs::GET,
        Need::service(READ, READ_SERVICE),
    )
    .comp(Comp::Properties),
    service(
        TableOperation::GetTableServiceStats,
        "Get Table Service Stats",
        Verbs::GET,
        Need::service(READ, READ_SERVICE),
    )
    .comp(Comp::Stats)
    .since(Version::V2013_08_15),
    // Each part of the batch is authorized by itself.
    at(
        Scope::TableBatch,
        TableOperation::EntityGroupTransaction,
        "Entity Group Transaction (batch)",
        Verbs::POST,
        Need::object(ANY_SAS, &[&[]]),
    )
    .in_parts()
    .since(Version::V2009_04_14)
    .success(&[202]),
    at(
        Scope::TableEntry,
        TableOperation::GetTable,
        "Get Table (single table by name)",
        Verbs::GET,
        Need::container(LIST, READ_TABLE),
    ),
    entity(
        TableOperation::InsertOrReplaceEntity,
        "Insert Or Replace Entity",
        Verbs::PUT,
        ADD_AND_UPDATE,
        UPSERT_ENTITY,
    )
    .since(Version::V2011_08_18),
    entity(
        TableOperation::InsertOrMergeEntity,
        "Insert Or Merge Entity",
        Verbs::MERGE_OR_PATCH,
        ADD_AND_UPDATE,
        UPSERT_ENTITY,
    )
    .since(Version::V2011_08_18),
    at(
        Scope::TableMetadata,
        TableOperation::GetODataMetadata,
        "Get OData metadata",
        Verbs::GET,
        Need::service(ANY_SAS, &[&[]]).with_service_sas(),
    ),
    at(
        Scope::Any,
        TableOperation::PreflightTableRequest,
        "Preflight Table Request",
        Verbs::OPTIONS,
        Need::NOTHING,
    )
    .since(Version::V2013_08_15),
];
