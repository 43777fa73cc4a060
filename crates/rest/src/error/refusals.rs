//! The answers to refusals and failures. Every match is exhaustive: a new refusal does not compile
//! until it has an answer here.

use holdfast_domain::blob::{BlobRefusal, ContainerRefusal, FindRefusal};
use holdfast_domain::condition::{AppendRefusal, EntityConditionInvalid};
use holdfast_domain::content::ReceiveFailure;
use holdfast_domain::failure::{Failure, Fault};
use holdfast_domain::lease::{AccessRefusal, LeaseRefusal};
use holdfast_domain::metadata::MetadataRefusal;
use holdfast_domain::names::NameRefusal;
use holdfast_domain::table::filter::InvalidFilter;
use holdfast_domain::table::{
    EntityRefusal, KeyRefusal as EntityKeyRefusal, PropertyRefusal, TableRefusal,
};
use holdfast_domain::tags::TagsRefusal;
use hyper::StatusCode;

use crate::address::InvalidUri;
use crate::auth::{AuthRefusal, KeyRefusal};
use crate::body::multipart::MultipartRefusal;
use crate::body::{DigestRefusal, StructuredRefusal, encode_crc64};
use crate::cors::PreflightRefusal;
use crate::error::{Code, Error};
use crate::headers::range::RangeRefusal;
use crate::operation::RouteRefusal;
use crate::table::{BatchRefusal, EntityBodyRefusal};
use crate::url_query::QueryRefusal;
use crate::xml::document::DocumentRefusal;

impl<R: Into<Self>> From<Failure<R>> for Error {
    fn from(failure: Failure<R>) -> Self {
        match failure {
            Failure::Refused(refusal) => refusal.into(),
            Failure::Busy => Code::ServerBusy.into(),
            Failure::OutcomeUnknown(fault) => {
                tracing::error!(?fault, "it is not known whether a write was committed");
                // The status tells, too: an operation may have happened after a 500, but not after
                // a 503.
                Code::InternalError.into()
            }
            Failure::Fault(fault) => fault.into(),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        tracing::error!(?fault, "a request failed");
        if fault.is_no_room() {
            return Self::from(Code::ServerBusy)
                .explain("The server has no room left on its disk. Nothing was written.");
        }
        if fault.is_no_descriptors() {
            return Self::from(Code::ServerBusy)
                .explain("The server cannot open more files now. Nothing was written.");
        }
        Code::InternalError.into()
    }
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl From<MultipartRefusal> for Error {
    fn from(refusal: MultipartRefusal) -> Self {
        match refusal {
            MultipartRefusal::Unreadable(why) => {
                Self::from(Code::InvalidInput).detail("Reason", why)
            }
            MultipartRefusal::Empty => {
                Self::from(Code::InvalidInput).detail("Reason", "the batch has no parts")
            }
            MultipartRefusal::TooManyParts => Code::ExceedsMaxBatchRequestCount.into(),
        }
    }
}

impl From<ReceiveFailure<Self>> for Error {
    fn from(failure: ReceiveFailure<Self>) -> Self {
        match failure {
            ReceiveFailure::Source(error) => error,
            ReceiveFailure::Fault(fault) => fault.into(),
        }
    }
}

impl From<ContainerRefusal> for Error {
    fn from(refusal: ContainerRefusal) -> Self {
        let code = match refusal {
            ContainerRefusal::NotFound => Code::ContainerNotFound,
            ContainerRefusal::AlreadyExists => Code::ContainerAlreadyExists,
            ContainerRefusal::BeingDeleted => Code::ContainerBeingDeleted,
            ContainerRefusal::DeletedNotFound => {
                return Self::from(Code::ContainerNotFound).with_status(StatusCode::CONFLICT);
            }
            ContainerRefusal::ConditionNotMet => Code::ConditionNotMet,
            ContainerRefusal::LeaseAccess(refusal) => match refusal {
                AccessRefusal::IdMissing => Code::LeaseIdMissing,
                AccessRefusal::IdMismatch => Code::LeaseIdMismatchWithContainerOperation,
                AccessRefusal::NotPresent => Code::LeaseNotPresentWithContainerOperation,
                AccessRefusal::Lost => Code::LeaseLost,
                AccessRefusal::InfiniteDurationRequired => Code::InfiniteLeaseDurationRequired,
            },
            ContainerRefusal::LeaseAction(refusal) => lease_code(refusal),
        };
        Self::from(code).about("container")
    }
}

impl From<BlobRefusal> for Error {
    fn from(refusal: BlobRefusal) -> Self {
        match refusal {
            BlobRefusal::ContainerNotFound => Code::ContainerNotFound,
            BlobRefusal::NotFound => Code::BlobNotFound,
            BlobRefusal::AlreadyExists => Code::BlobAlreadyExists,
            BlobRefusal::OverwriteNotPermitted => Code::UnauthorizedBlobOverwrite,
            BlobRefusal::Archived => Code::BlobArchived,
            BlobRefusal::WrongKind => Code::InvalidBlobType,
            BlobRefusal::SnapshotsPresent => Code::SnapshotsPresent,
            BlobRefusal::CurrentVersion => Code::OperationNotAllowedOnRootBlob,
            BlobRefusal::PermanentDeleteNotAllowed | BlobRefusal::NotDeleted => {
                Code::BlobOperationNotSupported
            }
            BlobRefusal::CopyPending => Code::PendingCopyOperation,
            BlobRefusal::NoCopyPending => Code::NoPendingCopyOperation,
            BlobRefusal::CopyIdMismatch => Code::CopyIdMismatch,
            BlobRefusal::IncrementalCopyOnly => Code::OperationNotAllowedOnIncrementalCopyBlob,
            BlobRefusal::ScopeNotAllowed => Code::RequestForbiddenByContainerEncryptionPolicy,
            BlobRefusal::OtherKey => Code::BlobUsesCustomerSpecifiedEncryption,
            BlobRefusal::IncrementalSourceNotSnapshot => Code::IncrementalCopySourceMustBeSnapshot,
            BlobRefusal::IncrementalOtherSource => Code::IncrementalCopyBlobMismatch,
            BlobRefusal::IncrementalSnapshotEarlier => {
                Code::IncrementalCopyOfEarlierVersionSnapshotNotAllowed
            }
            BlobRefusal::Immutable => Code::BlobImmutableDueToPolicy,
            BlobRefusal::LegalHold => Code::BlobImmutableDueToLegalHold,
            BlobRefusal::DateNotInFuture => Code::InvalidHeaderValue,
            BlobRefusal::BeingRehydrated => Code::BlobBeingRehydrated,
            BlobRefusal::SnapshotStaysArchived => Code::BlobArchived,
            BlobRefusal::LowerTier => Code::CannotChangeToLowerTier,
            BlobRefusal::LengthOverTier => Code::ContentLengthLargerThanTierLimit,
            BlobRefusal::TooManySnapshots => Code::SnapshotCountExceeded,
            BlobRefusal::SnapshotTooSoon => Code::SnapshotOperationRateExceeded,
            BlobRefusal::TierTooSmall => Code::BlobTierInadequateForContentLength,
            BlobRefusal::TierOfOtherKind => Code::AccessTierNotSupportedForBlobType,
            BlobRefusal::TooManyBlocks => Code::BlockCountExceedsLimit,
            BlobRefusal::TooManyUncommittedBlocks => {
                return Self::from(Code::BlockCountExceedsLimit).with_message(
                    "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.",
                );
            }
            BlobRefusal::BlockIdLength => Code::InvalidBlobOrBlock,
            BlobRefusal::BlockListTooLong => Code::BlockListTooLong,
            BlobRefusal::InvalidBlockList => Code::InvalidBlockList,
            BlobRefusal::Sealed => Code::BlobIsSealed,
            BlobRefusal::AppendConditionNotMet(refusal) => match refusal {
                AppendRefusal::PositionNotMet => Code::AppendPositionConditionNotMet,
                AppendRefusal::SizeNotMet => Code::MaxBlobSizeConditionNotMet,
            },
            BlobRefusal::NotModified { etag, last_modified } => {
                return Self::from(Code::ConditionNotMet)
                    .with_status(StatusCode::NOT_MODIFIED)
                    .header("etag", etag.to_string())
                    .header("last-modified", last_modified.rfc1123().to_string());
            }
            BlobRefusal::ConditionNotMet | BlobRefusal::SourceTagsNotMet => Code::ConditionNotMet,
            BlobRefusal::TargetConditionNotMet => Code::TargetConditionNotMet,
            BlobRefusal::UnsatisfiableCondition => Code::UnsatisfiableCondition,
            BlobRefusal::InvalidRange { length } => {
                return Self::from(Code::InvalidRange)
                    .header("content-range", format!("bytes */{length}"));
            }
            BlobRefusal::InvalidPageRange => Code::InvalidPageRange,
            BlobRefusal::PagesLengthMismatch => {
                return Self::from(Code::InvalidHeaderValue)
                    .detail("HeaderName", "x-ms-range")
                    .detail("Reason", "The bytes are not as many as the range has.");
            }
            BlobRefusal::SequenceConditionNotMet => Code::SequenceNumberConditionNotMet,
            BlobRefusal::SequenceNumberTooLarge => Code::SequenceNumberIncrementTooLarge,
            BlobRefusal::LengthNotChangeable => {
                return Self::from(Code::InvalidHeaderValue)
                    .detail("HeaderName", "x-ms-blob-content-length")
                    .detail("Reason", "Only page blobs can be given another length.");
            }
            BlobRefusal::PreviousSnapshotNotFound => Code::PreviousSnapshotNotFound,
            BlobRefusal::PreviousSnapshotNewer => Code::PreviousSnapshotCannotBeNewer,
            BlobRefusal::Overwritten => Code::BlobOverwritten,
            BlobRefusal::LeaseAccess(refusal) => match refusal {
                AccessRefusal::IdMissing => Code::LeaseIdMissing,
                AccessRefusal::IdMismatch => Code::LeaseIdMismatchWithBlobOperation,
                AccessRefusal::NotPresent => Code::LeaseNotPresentWithBlobOperation,
                AccessRefusal::Lost => Code::LeaseLost,
                AccessRefusal::InfiniteDurationRequired => Code::InfiniteLeaseDurationRequired,
            },
            BlobRefusal::LeaseAction(refusal) => lease_code(refusal),
        }
        .into()
    }
}

pub(crate) fn lease_code(refusal: LeaseRefusal) -> Code {
    match refusal {
        LeaseRefusal::AlreadyPresent => Code::LeaseAlreadyPresent,
        LeaseRefusal::BreakingCannotBeAcquired => Code::LeaseIsBreakingAndCannotBeAcquired,
        LeaseRefusal::BreakingCannotBeChanged => Code::LeaseIsBreakingAndCannotBeChanged,
        LeaseRefusal::BrokenCannotBeRenewed => Code::LeaseIsBrokenAndCannotBeRenewed,
        LeaseRefusal::IdMismatch => Code::LeaseIdMismatchWithLeaseOperation,
        LeaseRefusal::NotPresent => Code::LeaseNotPresentWithLeaseOperation,
        LeaseRefusal::RenewNotSupported => Code::InvalidHeaderValue,
        LeaseRefusal::AlreadyBroken => Code::LeaseAlreadyBroken,
    }
}

impl From<FindRefusal> for Error {
    fn from(refusal: FindRefusal) -> Self {
        let name = match refusal {
            FindRefusal::ContainerNotFound => return Code::ContainerNotFound.into(),
            FindRefusal::NoTag => "where",
            FindRefusal::InvalidMarker => "marker",
        };
        Self::from(Code::InvalidQueryParameterValue).detail("QueryParameterName", name)
    }
}

impl From<EntityConditionInvalid> for Error {
    fn from(refusal: EntityConditionInvalid) -> Self {
        match refusal {
            EntityConditionInvalid::Missing => Self::missing_header("if-match"),
            EntityConditionInvalid::NoneMatchNotSupported => {
                Self::from(Code::InvalidInput).explain("If-None-Match cannot be sent here.")
            }
            EntityConditionInvalid::NotSupported => Self::from(Code::InvalidInput).with_message(
                "If-Match or If-None-Match headers cannot be specified if the target type does not \
                 have etag properties defined.",
            ),
            EntityConditionInvalid::Malformed => Self::from(Code::InvalidInput).with_message(
                "The etag value specified in one of the request headers is not valid. Please make \
                 sure only one etag value is specified and is valid.",
            ),
        }
    }
}

impl From<BatchRefusal> for Error {
    fn from(refusal: BatchRefusal) -> Self {
        match refusal {
            BatchRefusal::Unreadable(_) => {
                Self::from(Code::InvalidInput).explain(format!("{refusal}."))
            }
            BatchRefusal::TooMany => Self::from(Code::InvalidInput).with_message(
                "The batch request operation exceeds the maximum 100 changes per change set.",
            ),
        }
    }
}

impl From<TableRefusal> for Error {
    fn from(refusal: TableRefusal) -> Self {
        match refusal {
            TableRefusal::NotFound => Code::ResourceNotFound,
            TableRefusal::AlreadyExists => Code::TableAlreadyExists,
            TableRefusal::BeingDeleted => Code::TableBeingDeleted,
        }
        .into()
    }
}

impl From<EntityRefusal> for Error {
    fn from(refusal: EntityRefusal) -> Self {
        match refusal {
            EntityRefusal::TableNotFound => Code::TableNotFound,
            EntityRefusal::NotFound => Code::ResourceNotFound,
            EntityRefusal::AlreadyExists => Code::EntityAlreadyExists,
            EntityRefusal::ConditionNotMet => Code::UpdateConditionNotSatisfied,
            EntityRefusal::Property(refusal) => return refusal.into(),
            EntityRefusal::OtherPartition => Code::CommandsInBatchActOnDifferentPartitions,
            EntityRefusal::ChangedTwice => Code::InvalidDuplicateRow,
        }
        .into()
    }
}

impl From<PropertyRefusal> for Error {
    fn from(refusal: PropertyRefusal) -> Self {
        match refusal {
            PropertyRefusal::NameInvalid => Code::PropertyNameInvalid,
            PropertyRefusal::NameTooLong => Code::PropertyNameTooLong,
            PropertyRefusal::Duplicate => Code::DuplicatePropertiesSpecified,
            PropertyRefusal::DateOutOfRange => Code::OutOfRangeInput,
            PropertyRefusal::ValueTooLarge => Code::PropertyValueTooLarge,
            PropertyRefusal::TooMany => Code::TooManyProperties,
            PropertyRefusal::EntityTooLarge => Code::EntityTooLarge,
        }
        .into()
    }
}

impl From<EntityKeyRefusal> for Error {
    fn from(refusal: EntityKeyRefusal) -> Self {
        match refusal {
            EntityKeyRefusal::TooLong => Code::PropertyValueTooLarge,
            EntityKeyRefusal::Characters => Code::OutOfRangeInput,
        }
        .into()
    }
}

impl From<InvalidFilter> for Error {
    fn from(refusal: InvalidFilter) -> Self {
        Self::from(Code::InvalidInput).explain(format!("{refusal}."))
    }
}

impl From<EntityBodyRefusal> for Error {
    fn from(refusal: EntityBodyRefusal) -> Self {
        match refusal {
            EntityBodyRefusal::Unreadable | EntityBodyRefusal::Value => {
                Self::from(Code::InvalidInput)
                    .with_message("An error occurred while processing this request.")
                    .explain(format!("{refusal}."))
            }
            EntityBodyRefusal::UnknownType => Code::InvalidValueType.into(),
            EntityBodyRefusal::KeyMissing => Code::PropertiesNeedValue.into(),
            EntityBodyRefusal::KeyNotText | EntityBodyRefusal::OtherKey => {
                Self::from(Code::InvalidInput).explain(format!("{refusal}."))
            }
            EntityBodyRefusal::Property(refusal) => refusal.into(),
            EntityBodyRefusal::Key(refusal) => refusal.into(),
        }
    }
}

impl From<NameRefusal> for Error {
    fn from(refusal: NameRefusal) -> Self {
        match refusal {
            // The Python SDK of tables searches for this text.
            NameRefusal::Length => Self::from(Code::OutOfRangeInput).with_message(
                "The specified resource name length is not within the permissible limits.",
            ),
            NameRefusal::Characters | NameRefusal::Reserved => Code::InvalidResourceName.into(),
            NameRefusal::Address => Code::InvalidUri.into(),
        }
    }
}

impl From<MetadataRefusal> for Error {
    fn from(refusal: MetadataRefusal) -> Self {
        match refusal {
            MetadataRefusal::EmptyName => Code::EmptyMetadataKey,
            MetadataRefusal::Invalid | MetadataRefusal::DuplicateName => Code::InvalidMetadata,
            MetadataRefusal::TooLarge => Code::MetadataTooLarge,
        }
        .into()
    }
}

impl From<TagsRefusal> for Error {
    fn from(refusal: TagsRefusal) -> Self {
        match refusal {
            TagsRefusal::TooMany | TagsRefusal::TooLong | TagsRefusal::HeaderTooLarge => {
                Code::TagsTooLarge
            }
            TagsRefusal::EmptyName => Code::EmptyTagName,
            TagsRefusal::DuplicateName => Code::DuplicateTagNames,
            TagsRefusal::InvalidCharacter | TagsRefusal::Malformed => Code::InvalidTag,
        }
        .into()
    }
}

impl From<RangeRefusal> for Error {
    fn from(RangeRefusal { name, value }: RangeRefusal) -> Self {
        Self::invalid_header(name, value)
    }
}

impl From<DigestRefusal> for Error {
    fn from(refusal: DigestRefusal) -> Self {
        const CRC64: &str = "x-ms-content-crc64";
        match refusal {
            DigestRefusal::InvalidMd5 => Code::InvalidMd5.into(),
            DigestRefusal::InvalidCrc64 { value } => Self::invalid_header(CRC64, value),
            DigestRefusal::BothSent => Code::BothCrc64AndMd5HeaderPresent.into(),
            DigestRefusal::Md5Mismatch { sent, calculated } => Self::from(Code::Md5Mismatch)
                .detail("UserSpecifiedMd5", sent)
                .detail("ServerCalculatedMd5", calculated),
            DigestRefusal::Crc64Mismatch { sent, calculated } => Self::from(Code::Crc64Mismatch)
                .detail("UserSpecifiedCrc64", sent)
                .detail("ServerCalculatedCrc64", calculated),
        }
    }
}

impl From<StructuredRefusal> for Error {
    fn from(refusal: StructuredRefusal) -> Self {
        const LENGTH: &str = "x-ms-structured-content-length";
        match refusal {
            StructuredRefusal::UnknownStructure { value } => {
                Self::invalid_header("x-ms-structured-body", value)
            }
            StructuredRefusal::ContentLengthMissing => Self::missing_header(LENGTH),
            StructuredRefusal::ContentLengthInvalid { value } => {
                Self::invalid_header(LENGTH, value)
            }
            StructuredRefusal::Malformed { reason } => {
                Self::from(Code::InvalidInput).detail("Reason", reason)
            }
            StructuredRefusal::Crc64Mismatch { sent, calculated } => DigestRefusal::Crc64Mismatch {
                sent: encode_crc64(sent),
                calculated: encode_crc64(calculated),
            }
            .into(),
        }
    }
}

impl From<DocumentRefusal> for Error {
    fn from(refusal: DocumentRefusal) -> Self {
        match refusal {
            DocumentRefusal::InvalidDocument { reason } => {
                Self::from(Code::InvalidXmlDocument).detail("Reason", reason)
            }
            DocumentRefusal::InvalidNodeValue { name, value } => {
                Self::from(Code::InvalidXmlNodeValue)
                    .detail("XmlNodeName", name)
                    .detail("XmlNodeValue", value)
            }
            DocumentRefusal::MissingNode { name } => {
                Self::from(Code::MissingRequiredXmlNode).detail("XmlNodeName", name)
            }
            DocumentRefusal::UnsupportedNode { name } => {
                Self::from(Code::UnsupportedXmlNode).detail("XmlNodeName", name)
            }
        }
    }
}

#[cfg(feature = "query")]
impl From<holdfast_sql::Refusal> for Error {
    fn from(refusal: holdfast_sql::Refusal) -> Self {
        use holdfast_sql::Refusal;
        match refusal {
            // As the service: MicrosoftDocs/azure-docs, issue 75064.
            Refusal::Syntax(_) | Refusal::Unfit { .. } => {
                Self::from(Code::ErrorProcessingQueryExpression)
                    .detail("Reason", refusal.to_string())
            }
            Refusal::TooLong => {
                Self::from(Code::OutOfRangeInput).detail("Reason", refusal.to_string())
            }
            Refusal::Setting { setting, value } => {
                DocumentRefusal::InvalidNodeValue { name: setting, value }.into()
            }
        }
    }
}

impl From<PreflightRefusal> for Error {
    fn from(_: PreflightRefusal) -> Self {
        Code::CorsPreflightFailure.into()
    }
}

impl From<KeyRefusal> for Error {
    fn from(refusal: KeyRefusal) -> Self {
        let error = Self::from(Code::InvalidXmlNodeValue).detail("Reason", refusal.to_string());
        match refusal {
            KeyRefusal::Expired | KeyRefusal::TooLong => error.detail("XmlNodeName", "Expiry"),
        }
    }
}

impl From<InvalidUri> for Error {
    fn from(_: InvalidUri) -> Self {
        Code::InvalidUri.into()
    }
}

impl From<QueryRefusal> for Error {
    fn from(refusal: QueryRefusal) -> Self {
        match refusal {
            QueryRefusal::Unreadable => Code::RequestUrlFailedToParse.into(),
            QueryRefusal::Missing { name } => {
                Self::from(Code::MissingRequiredQueryParameter).detail("QueryParameterName", name)
            }
            QueryRefusal::InvalidValue { name, value } => {
                Self::from(Code::InvalidQueryParameterValue)
                    .detail("QueryParameterName", name)
                    .detail("QueryParameterValue", value)
                    .detail("Reason", "The value is not of the form that the parameter takes.")
            }
            QueryRefusal::OutOfRange { name, value, minimum, maximum } => {
                Self::from(Code::OutOfRangeQueryParameterValue)
                    .detail("QueryParameterName", name)
                    .detail("QueryParameterValue", value)
                    .detail("MinimumAllowed", minimum.to_string())
                    .detail("MaximumAllowed", maximum.to_string())
                    .detail("Reason", "The value is not within what is allowed.")
            }
        }
    }
}

/// The Python SDK of tables searches for this text.
const KEYS_EXPECTED: &str = "The number of keys specified in the URI does not match number of key properties for the resource.";

impl From<RouteRefusal> for Error {
    fn from(refusal: RouteRefusal) -> Self {
        match refusal {
            RouteRefusal::UnsupportedVerb { allow } => {
                Self::from(Code::UnsupportedHttpVerb).header("allow", allow.to_string())
            }
            RouteRefusal::UnknownVerb => Code::InvalidHttpVerb.into(),
            RouteRefusal::InvalidQueryParameterValue { name, value } => {
                QueryRefusal::InvalidValue { name, value }.into()
            }
            RouteRefusal::MissingRequiredHeader { name } => Self::missing_header(name),
            RouteRefusal::InvalidHeaderValue { name, value } => Self::invalid_header(name, value),
            RouteRefusal::MissingRequiredQueryParameter { name } => {
                QueryRefusal::Missing { name }.into()
            }
            RouteRefusal::InvalidUri => Code::InvalidUri.into(),
            RouteRefusal::BelowTable => Self::from(Code::InvalidInput).with_message(KEYS_EXPECTED),
            RouteRefusal::TunnelNotUsingPost => Code::XMethodNotUsingPost.into(),
            RouteRefusal::TunnelIncorrectCount => Code::XMethodIncorrectCount.into(),
            RouteRefusal::TunnelIncorrectValue => Code::XMethodIncorrectValue.into(),
        }
    }
}

impl From<AuthRefusal> for Error {
    fn from(refusal: AuthRefusal) -> Self {
        let duplicate = "It is sent more than once.";
        match refusal {
            AuthRefusal::AuthenticationFailed { detail } => {
                Self::from(Code::AuthenticationFailed).detail("AuthenticationErrorDetail", detail)
            }
            AuthRefusal::InvalidAuthenticationInfo { detail } => {
                Self::from(Code::InvalidAuthenticationInfo)
                    .detail("AuthenticationErrorDetail", detail)
            }
            AuthRefusal::InvalidToken { detail, challenge } => {
                challenged(Code::InvalidAuthenticationInfo, challenge.as_deref())
                    .with_status(StatusCode::UNAUTHORIZED)
                    .with_message(Code::NoAuthenticationInformation.message())
                    .detail("AuthenticationErrorDetail", detail)
            }
            AuthRefusal::NoAuthenticationInformation { challenge } => {
                challenged(Code::NoAuthenticationInformation, challenge.as_deref())
            }
            AuthRefusal::ResourceNotFound => Code::ResourceNotFound.into(),
            AuthRefusal::PublicAccessNotPermitted => Code::PublicAccessNotPermitted.into(),
            AuthRefusal::DuplicateHeader { name } => Self::from(Code::InvalidHeaderValue)
                .detail("HeaderName", name)
                .detail("Reason", duplicate),
            AuthRefusal::DuplicateQueryParameter { name } => {
                Self::from(Code::InvalidQueryParameterValue)
                    .detail("QueryParameterName", name)
                    .detail("Reason", duplicate)
            }
            AuthRefusal::FieldInPolicyAndToken { name } => {
                Self::from(Code::InvalidQueryParameterValue)
                    .detail("QueryParameterName", name)
                    .detail("Reason", "The stored access policy gives it too.")
            }
            AuthRefusal::PolicyNotFound => Self::from(Code::AuthenticationFailed).detail(
                "AuthenticationErrorDetail",
                "SAS identifier cannot be found for specified signed identifier",
            ),
            AuthRefusal::SourceIpMismatch => Code::AuthorizationSourceIPMismatch.into(),
            AuthRefusal::ProtocolMismatch => Code::AuthorizationProtocolMismatch.into(),
            AuthRefusal::ServiceMismatch => Code::AuthorizationServiceMismatch.into(),
            AuthRefusal::ResourceTypeMismatch => Code::AuthorizationResourceTypeMismatch.into(),
            AuthRefusal::PermissionMismatch { hidden: true } => Code::ResourceNotFound.into(),
            AuthRefusal::PermissionMismatch { hidden: false } => {
                Code::AuthorizationPermissionMismatch.into()
            }
            AuthRefusal::AuthorizationFailure => Code::AuthorizationFailure.into(),
            AuthRefusal::SasParameterMandatory { name } => {
                Self::from(Code::QueryParameterSasMandatory).detail("QueryParameterName", name)
            }
            AuthRefusal::DirectorySasNotSupported => Code::DirectorySasNotSupportedVersion.into(),
            AuthRefusal::DirectoryDepthInvalid => Code::QueryParameterSddInvalid.into(),
        }
    }
}

fn challenged(code: Code, challenge: Option<&str>) -> Error {
    match challenge {
        Some(challenge) => Error::from(code).header("www-authenticate", challenge),
        None => code.into(),
    }
}
