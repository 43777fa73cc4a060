//! The one place where refusals get their HTTP status, error code and message.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::StatusCode;
use quick_xml::escape::escape;

use crate::answer::{Answer, AnswerBody};
use crate::request::RequestId;
use crate::service::Service;
use crate::website;
use crate::xml;
use holdfast_domain::time::Timestamp;

#[cfg(test)]
mod listed;

macro_rules! codes {
    ($($name:ident = $status:literal $message:literal;)*) => {
        /// An error code of the services, with the status and message it is answered with.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($name,)* }

        impl Code {
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$name),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }
        }
    };
}

codes! {
    AccountIsDisabled = 403 "The account is disabled.";
    AllBatchSubRequestsShouldBeSameApi = 400 "The parts of a batch must all be of one operation.";
    AccessTierNotSupportedForBlobType = 400 "The tier is not for blobs of this type.";
    AppendPositionConditionNotMet = 412 "The blob does not end where the block is to be appended.";
    AuthenticationFailed = 403 "The request could not be authenticated. Check the form of the Authorization header and its signature.";
    AuthorizationFailure = 403 "The caller is not authorized to perform this operation.";
    AuthorizationPermissionMismatch = 403 "The caller lacks a permission that this operation needs.";
    AuthorizationProtocolMismatch = 403 "The signature does not allow the protocol that was used.";
    AuthorizationResourceTypeMismatch = 403 "The signature does not cover this type of resource.";
    AuthorizationServiceMismatch = 403 "The signature does not cover this service.";
    AuthorizationSourceIPMismatch = 403 "The signature does not allow the address of the caller.";
    BlobAlreadyExists = 409 "The blob already exists.";
    BlobArchived = 409 "The blob is archived and must be rehydrated before it can be used.";
    BlobBeingRehydrated = 409 "The blob is on its way out of the archive.";
    BlobImmutableDueToLegalHold = 409 "A legal hold keeps the blob as it is.";
    BlobImmutableDueToPolicy = 409 "A policy keeps the blob as it is.";
    BlobOperationNotSupported = 409 "The operation is not possible on this state of the blob, or the account does not allow it.";
    BlobIsSealed = 409 "The blob is sealed, and nothing can be appended to it.";
    BlobNotFound = 404 "The blob does not exist.";
    BlobOverwritten = 409 "The blob was replaced by another since the snapshot to compare with.";
    BlobTierInadequateForContentLength = 409 "The blob is too long for the tier.";
    BlobUsesCustomerSpecifiedEncryption = 409 "The blob is encrypted with a key of the client, and the request does not have that key.";
    BlockCountExceedsLimit = 409 "The blob has as many blocks as it can have.";
    BlockListTooLong = 400 "The list has more blocks than a blob can have.";
    BothUserTagsAndSourceTagsCopyPresentException = 400 "Tags are sent, and those of the source are to be copied too.";
    CannotChangeToLowerTier = 409 "The tier of a page blob cannot be lowered.";
    CannotVerifyCopySource = 500 "The source of the copy could not be read.";
    ConditionHeadersNotSupported = 400 "This operation takes none of the condition headers that were sent.";
    ConditionNotMet = 412 "A condition of the request headers is not met.";
    ContainerAlreadyExists = 409 "The container already exists.";
    ContainerBeingDeleted = 409 "The container was deleted, and its name is not free yet.";
    ContainerNotFound = 404 "The container does not exist.";
    ContentLengthLargerThanTierLimit = 409 "The blob would become longer than its tier allows.";
    CopyAcrossAccountsNotSupported = 400 "At this version a blob is copied within its account only.";
    CopyIdMismatch = 409 "The copy id of the request is not that of the copy under way.";
    CorsPreflightFailure = 403 "Cross-origin access is switched off, or no rule allows this request.";
    Crc64Mismatch = 400 "The CRC64 of the body differs from the one in the request.";
    DirectorySasNotSupportedVersion = 409 "Signatures for directories are of a later version.";
    EmptyMetadataKey = 400 "A metadata name is empty.";
    ExceedsMaxBatchRequestCount = 400 "The batch has more parts than allowed.";
    ErrorProcessingQueryExpression = 400 "The query expression cannot be processed.";
    FeatureVersionMismatch = 409 "The blob has something that the version of the request does not know.";
    IncrementalCopyBlobMismatch = 409 "The blob does not come from incremental copies of this source.";
    IncrementalCopyOfEarlierVersionSnapshotNotAllowed = 409 "A snapshot that is not older than this one has been copied already.";
    IncrementalCopySourceMustBeSnapshot = 409 "The source of an incremental copy must be a snapshot.";
    InfiniteLeaseDurationRequired = 412 "The lease of the destination must be without end.";
    InsufficientAccountPermissions = 403 "The account may not perform this operation.";
    InternalError = 500 "The server met an internal error. Please retry the request.";
    InvalidAuthenticationInfo = 400 "The authentication information has not the right form.";
    InvalidBlobOrBlock = 400 "The ids of the blocks of a blob must all be of the same length.";
    InvalidBlobTier = 400 "There is no such tier.";
    InvalidBlobType = 409 "The operation is not for blobs of this type.";
    InvalidBlockId = 400 "The id of a block is not valid.";
    InvalidBlockList = 400 "The list names a block that is not there, or one block in two ways.";
    InvalidHeaderValue = 400 "A request header has a value that is not valid.";
    InvalidHttpVerb = 400 "The method of the request is not known.";
    InvalidInput = 400 "A part of the request is not valid.";
    InvalidMarker = 400 "The marker is not one that a listing gave.";
    InvalidMd5 = 400 "The MD5 in the request is not valid.";
    InvalidMetadata = 400 "A metadata name or value has characters that are not allowed.";
    InvalidOperation = 400 "This cannot be done to a snapshot.";
    InvalidPageRange = 416 "The range is not one of whole pages within the blob.";
    InvalidQueryParameterValue = 400 "A query parameter has a value that is not valid.";
    InvalidRange = 416 "The range lies outside the resource.";
    InvalidResourceName = 400 "The name of the resource has characters that are not allowed.";
    InvalidSourceBlobType = 409 "The source of the copy is of a type that this operation does not copy.";
    InvalidSourceBlobUrl = 409 "The source of an incremental copy must be a blob on this server.";
    InvalidUri = 400 "The address of the request is not valid.";
    InvalidVersionForPageBlobOperation = 400 "There are page blobs since version 2009-09-19.";
    InvalidXmlDocument = 400 "The body is not a valid XML document for this operation.";
    InvalidXmlNodeValue = 400 "A value in the XML body is not valid.";
    LeaseAlreadyBroken = 409 "The lease is broken already.";
    LeaseAlreadyPresent = 409 "There is a lease already.";
    LeaseIdMismatchWithBlobOperation = 412 "The lease id of the request is not that of the lease of the blob.";
    LeaseIdMismatchWithContainerOperation = 412 "The lease id of the request is not that of the lease of the container.";
    LeaseIdMismatchWithLeaseOperation = 409 "The lease id of the request is not that of the lease.";
    LeaseIdMissing = 412 "There is a lease, and the request names no lease id.";
    LeaseIsBreakingAndCannotBeAcquired = 409 "The lease is being broken and cannot be acquired until it is.";
    LeaseIsBreakingAndCannotBeChanged = 409 "The lease is being broken and its id cannot be changed.";
    LeaseIsBrokenAndCannotBeRenewed = 409 "The lease has been broken and cannot be renewed.";
    LeaseLost = 412 "The lease that the request names has expired.";
    LeaseNotPresentWithBlobOperation = 412 "The request names a lease id, but the blob has no lease.";
    LeaseNotPresentWithContainerOperation = 412 "The request names a lease id, but the container has no lease.";
    LeaseNotPresentWithLeaseOperation = 409 "There is no lease.";
    MaxBlobSizeConditionNotMet = 412 "The blob would become longer than the request allows.";
    Md5Mismatch = 400 "The MD5 of the body differs from the one in the request.";
    MessageNotFound = 404 "The message does not exist, or the pop receipt is not its current one.";
    MessageTooLarge = 400 "The message is larger than allowed.";
    MetadataTooLarge = 400 "The metadata is larger than allowed.";
    MissingContentLengthHeader = 411 "The Content-Length header is required.";
    MissingRequiredHeader = 400 "A header that this operation needs is missing.";
    MissingRequiredQueryParameter = 400 "A query parameter that this operation needs is missing.";
    MissingRequiredXmlNode = 400 "An element that the XML body needs is missing.";
    MultipleConditionHeadersNotSupported = 400 "These condition headers cannot be combined.";
    NoAuthenticationInformation = 401 "The request carries no authentication information.";
    NoPendingCopyOperation = 409 "No copy onto the blob is under way.";
    NotImplemented = 501 "This operation is known but not served yet.";
    OperationNotAllowedOnIncrementalCopyBlob = 409 "The blob is written by incremental copies only.";
    OperationNotAllowedOnRootBlob = 403 "The current version is deleted as the blob itself, not by its version id.";
    OperationTimedOut = 500 "The operation did not finish in its time.";
    OutOfRangeInput = 400 "A part of the request is out of range.";
    OutOfRangeQueryParameterValue = 400 "A query parameter is out of the range that is allowed.";
    PendingCopyOperation = 409 "A copy onto the blob is under way.";
    PopReceiptMismatch = 400 "The pop receipt is one of another message.";
    PreviousSnapshotCannotBeNewer = 400 "The snapshot to compare with must be older than what is compared with it.";
    PreviousSnapshotNotFound = 409 "The snapshot to compare with does not exist.";
    PublicAccessNotPermitted = 409 "Public access is not permitted on this account.";
    QueryParameterSasMandatory = 403 "A query parameter of the signature is missing.";
    QueryParameterSddInvalid = 403 "The directory depth of the signature does not fit the path.";
    QueueAlreadyExists = 409 "The queue already exists, with other metadata.";
    QueueBeingDeleted = 409 "The queue was deleted, and its name is not free yet.";
    QueueNotFound = 404 "The queue does not exist.";
    RequestBodyTooLarge = 413 "The body is larger than allowed.";
    RequestForbiddenByContainerEncryptionPolicy = 403 "The container fixes another encryption scope.";
    RequestUrlFailedToParse = 400 "The address of the request cannot be read.";
    ResourceNotFound = 404 "The resource does not exist.";
    SequenceNumberConditionNotMet = 412 "The condition on the sequence number is not met.";
    SequenceNumberIncrementTooLarge = 409 "The sequence number cannot be incremented further.";
    ServerBusy = 503 "The server is busy. Please retry the request.";
    SnapshotCountExceeded = 409 "The blob has as many snapshots as a page blob with a tier can have.";
    SnapshotOperationRateExceeded = 409 "A page blob with a tier can have a snapshot every ten minutes.";
    SnapshotsPresent = 409 "The blob has snapshots, and the request does not say what becomes of them.";
    SourceConditionNotMet = 412 "A condition on the source of the copy is not met.";
    CannotConvertToSddlDueToCustomAce = 400 "The security descriptor has a rule that has no text.";
    DeleteShareWhenSnapshotLeased = 409 "A snapshot of the share is leased.";
    FileInvalidPermission = 400 "The security descriptor is not valid.";
    FileInvalidPermissionKey = 400 "The share has no security descriptor of this key.";
    LeaseIdMismatchWithShareOperation = 412 "The lease id of the request is not that of the lease of the share.";
    LeaseNotPresentWithShareOperation = 412 "The request names a lease id, but the share has no lease.";
    CannotDeleteFileOrDirectory = 409 "The root of a share cannot be deleted, moved or replaced.";
    DirectoryNotEmpty = 409 "The directory is not empty.";
    FileGenerationMismatch = 409 "The file was replaced or renamed since the snapshot to compare with.";
    InvalidFileOrDirectoryPathName = 400 "The name of a file or directory has characters that are not allowed, or is reserved.";
    LeaseIdMismatchWithFileOperation = 412 "The lease id of the request is not that of the lease of the file.";
    LeaseNotPresentWithFileOperation = 412 "The request names a lease id, but the file has no lease.";
    // The list of codes says 500, the page on locks 408: the client may try again, and the server has
    // not failed.
    ClientCacheFlushDelay = 408 "An SMB client has not given up its cache of the file in time.";
    FileLockConflict = 409 "A part of the file is locked by an SMB client.";
    // The list of codes calls it DeletePending, the page on locks so.
    SMBDeletePending = 409 "The file or directory is marked for deletion by an SMB client.";
    SharingViolation = 409 "An SMB client has the file open in a way that excludes this.";
    ParentNotFound = 404 "The directory that it would be in does not exist.";
    ReadOnlyAttribute = 409 "The file is read-only, by its attribute.";
    ResourceAlreadyExists = 409 "There is something of this name already.";
    ResourceTypeMismatch = 409 "The operation is for a directory, and there is a file; or the other way round.";
    ShareSizeLimitReached = 403 "The share would become larger than its quota.";
    ShareAlreadyExists = 409 "The share already exists.";
    ShareBeingDeleted = 409 "The share was deleted, and its name is not free yet.";
    ShareHasSnapshots = 409 "The share has snapshots, and the request does not say that they are to be deleted too.";
    ShareNotFound = 404 "The share does not exist.";
    ShareSnapshotCountExceeded = 409 "The share has as many snapshots as it can have.";
    ShareSnapshotNotFound = 404 "The share has no snapshot of this moment.";
    TagsTooLarge = 400 "The tags are larger than allowed.";
    InvalidTag = 400 "A tag has characters that are not allowed.";
    EmptyTagName = 400 "The name of a tag is empty.";
    DuplicateTagNames = 400 "The name of a tag is given more than once.";
    TargetConditionNotMet = 412 "A condition on the destination of the copy is not met.";
    UnauthorizedBlobOverwrite = 403 "The caller may create blobs but not replace them.";
    AtomFormatNotSupported = 415 "The Atom format is not supported; tables speak JSON.";
    CommandsInBatchActOnDifferentPartitions = 400 "The operations of a batch must all be on one partition of one table.";
    DuplicatePropertiesSpecified = 400 "A property is given more than once.";
    EntityAlreadyExists = 409 "The entity already exists.";
    EntityTooLarge = 400 "The entity is larger than 1 MiB.";
    InvalidDuplicateRow = 400 "A batch can have only one operation on an entity.";
    InvalidValueType = 400 "The type of a value is not known.";
    JsonFormatNotSupported = 415 "This version, or the data service version of the request, does not have JSON.";
    MediaTypeNotSupported = 415 "The media type is not supported; tables speak JSON.";
    MethodNotAllowed = 405 "The resource does not support this method.";
    PrimaryKeyPropertyIsInvalidType = 400 "PartitionKey and RowKey must be texts.";
    PropertiesNeedValue = 400 "The values are not specified for all properties in the entity.";
    PropertyNameInvalid = 400 "The name of a property is not valid.";
    PropertyNameTooLong = 400 "The name of a property is longer than 255 characters.";
    PropertyValueTooLarge = 400 "The value of a property is longer than 64 KiB, or a key than 1 KiB.";
    TableAlreadyExists = 409 "The table already exists.";
    TableBeingDeleted = 409 "The table was deleted, and its name is not free yet.";
    TableNotFound = 404 "The table specified does not exist.";
    TooManyProperties = 400 "The entity has more than 252 properties.";
    UpdateConditionNotSatisfied = 412 "The entity has changed since the ETag of the request.";
    UnsatisfiableCondition = 400 "The condition can never be met.";
    UnsupportedHeader = 400 "This operation does not take one of the headers that were sent.";
    UnsupportedHttpVerb = 405 "The resource does not support this method.";
    UnsupportedQueryParameter = 400 "This operation does not take one of the query parameters that were sent.";
    UnsupportedXmlNode = 400 "The XML body has an element that is not supported.";
    WebContentNotFound = 404 "The requested content does not exist.";
    XMethodIncorrectCount = 400 "The X-HTTP-Method header is sent more than once.";
    XMethodIncorrectValue = 400 "The X-HTTP-Method header has a value that is not valid here.";
    XMethodNotUsingPost = 400 "The X-HTTP-Method header goes with POST only.";
}

/// Of the errors of tables.
pub const JSON_CONTENT_TYPE: &str =
    "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";

/// An answer other than success: what the client is told. What only the log may know stays in the
/// log.
#[derive(Debug)]
pub struct Error {
    pub code: Code,
    /// Where it differs from the code's own: a condition that is not met is 304 on a read.
    status: Option<StatusCode>,
    /// Where it differs from the code's own: clients look for some texts of the service.
    message: Option<Cow<'static, str>>,
    /// Elements of the body beside code and message.
    details: Vec<(&'static str, String)>,
    /// Headers of the answer.
    headers: Vec<(&'static str, String)>,
}

impl From<Code> for Error {
    fn from(code: Code) -> Self {
        Self { code, status: None, message: None, details: Vec::new(), headers: Vec::new() }
    }
}

impl Error {
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    #[must_use]
    pub fn with_message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.message = Some(message.into());
        self
    }

    #[must_use]
    pub fn detail(mut self, element: &'static str, value: impl Into<String>) -> Self {
        self.details.push((element, value.into()));
        self
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn invalid_header(name: &str, value: impl Into<String>) -> Self {
        Self::from(Code::InvalidHeaderValue).detail("HeaderName", name).detail("HeaderValue", value)
    }

    pub fn missing_header(name: &str) -> Self {
        Self::from(Code::MissingRequiredHeader).detail("HeaderName", name)
    }

    pub fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| {
            StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        })
    }

    /// The answer in the form of the service. `bodiless` for HEAD; a 304 never has a body.
    pub fn answer(self, service: Service, id: RequestId, now: Timestamp, bodiless: bool) -> Answer {
        let status = self.status();
        let mut answer = Answer::new(status);
        answer.header("x-ms-error-code", self.code.name());
        for (name, value) in &self.headers {
            answer.header(name, value);
        }
        if !bodiless && status != StatusCode::NOT_MODIFIED {
            let (content_type, body) = match service {
                Service::Blob | Service::Queue | Service::File => {
                    ("application/xml", self.xml(id, now))
                }
                Service::Table => (JSON_CONTENT_TYPE, self.json(id, now)),
            };
            answer.header("content-type", content_type);
            answer.body = AnswerBody::Whole(Bytes::from(body));
        }
        answer
    }

    /// The answer where browsers ask: a page.
    pub fn page(&self, request_id: &str, bodiless: bool) -> Answer {
        let mut answer = website::page(self.status(), self.code, request_id, bodiless);
        for (name, value) in &self.headers {
            answer.header(name, value);
        }
        answer
    }

    /// The same with this in front of its message.
    #[must_use]
    pub fn with_message_prefix(self, prefix: impl std::fmt::Display) -> Self {
        let message = self.message.as_deref().unwrap_or(self.code.message());
        let message = format!("{prefix}{message}");
        self.with_message(message)
    }

    fn message(&self, id: RequestId, now: Timestamp) -> String {
        let message = self.message.as_deref().unwrap_or(self.code.message());
        format!("{message}\nRequestId:{id}\nTime:{}", now.iso8601())
    }

    fn xml(&self, id: RequestId, now: Timestamp) -> String {
        let mut body = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{}</Code><Message>{}</Message>",
            self.code.name(),
            self.message(id, now),
        );
        for (element, value) in &self.details {
            let value: String = value.chars().filter(|letter| xml::is_character(*letter)).collect();
            body.push_str(&format!("<{element}>{}</{element}>", escape(value.as_str())));
        }
        body.push_str("</Error>");
        body
    }

    /// The body of the answer as tables give it.
    pub fn json(&self, id: RequestId, now: Timestamp) -> String {
        let message = self.message(id, now);
        serde_json::json!({
            "odata.error": {
                "code": self.code.name(),
                "message": { "lang": "en-US", "value": message },
            }
        })
        .to_string()
    }
}
