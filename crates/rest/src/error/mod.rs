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
mod code_list;
pub(crate) mod refusals;

/// Each code has a status, the sentence of the service (or, marked so, one of our own where that is
/// not known), and an optional explanation.
macro_rules! codes {
    ($($name:ident = $status:literal $($own:ident)? $message:literal $($explanation:literal)?;)*) => {
        /// An error code of the services, with its status and message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($name,)* }

        impl Code {
            const ALL: &[Self] = &[$(Self::$name),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.name() == name)
            }

            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// One sentence. Clients search for those of the service.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }

            /// An addition to the sentence.
            const fn explanation(self) -> Option<&'static str> {
                match self { $(Self::$name => first(&[$($explanation)?]),)* }
            }

            #[cfg(test)]
            const fn has_own_message(self) -> bool {
                match self { $(Self::$name => !stringify!($($own)?).is_empty(),)* }
            }
        }
    };
}

const fn first(texts: &[&'static str]) -> Option<&'static str> {
    match texts {
        [text, ..] => Some(text),
        [] => None,
    }
}

codes! {
    AccountIsDisabled = 403 "The specified account is disabled.";
    AllBatchSubRequestsShouldBeSameApi = 400 "All batch subrequests should be the same api.";
    AccessTierNotSupportedForBlobType = 400 "The access tier is not supported for this blob type.";
    AppendPositionConditionNotMet = 412 "The append position condition specified was not met.";
    AuthenticationFailed = 403 "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.";
    AuthorizationFailure = 403 "This request is not authorized to perform this operation.";
    AuthorizationPermissionMismatch = 403 "This request is not authorized to perform this operation using this permission.";
    AuthorizationProtocolMismatch = 403 "This request is not authorized to perform this operation using this protocol.";
    AuthorizationResourceTypeMismatch = 403 "This request is not authorized to perform this operation using this resource type.";
    AuthorizationServiceMismatch = 403 "This request is not authorized to perform this operation using this service.";
    AuthorizationSourceIPMismatch = 403 "This request is not authorized to perform this operation using this source IP.";
    BlobAlreadyExists = 409 "The specified blob already exists.";
    BlobArchived = 409 "This operation is not permitted on an archived blob.";
    BlobBeingRehydrated = 409 "This operation is not permitted because the blob is being rehydrated.";
    BlobImmutableDueToLegalHold = 409 "This operation is not permitted as the blob is immutable due to one or more legal holds.";
    BlobImmutableDueToPolicy = 409 "This operation is not permitted as the blob is immutable due to a policy.";
    BlobOperationNotSupported = 409 "The operation is not supported in this scenario."
        "The state of the blob or the account does not allow it.";
    BlobIsSealed = 409 "The specified blob is sealed, and its contents can't be modified unless the blob is re-created after a delete.";
    BlobNotFound = 404 "The specified blob does not exist.";
    BlobOverwritten = 409 "The blob has been recreated since the previous snapshot was taken.";
    BlobTierInadequateForContentLength = 409 "Specified blob tier size limit cannot be less than content length.";
    BlobUsesCustomerSpecifiedEncryption = 409 "The blob is encrypted with customer specified encryption, but it was not provided in the request.";
    BlockCountExceedsLimit = 409 "The committed block count cannot exceed the maximum limit of 50,000 blocks.";
    BlockListTooLong = 400 "The block list may not contain more than 50,000 blocks.";
    BothCrc64AndMd5HeaderPresent = 400 "Both x-ms-content-crc64 header and Content-MD5 header are present.";
    BothUserTagsAndSourceTagsCopyPresentException = 400 "x-ms-tags header must not be present with x-ms-copy-source-tag-option as COPY.";
    CannotChangeToLowerTier = 409 "A higher blob tier has already been explicitly set.";
    CannotVerifyCopySource = 500 "Could not verify the copy source within the specified time.";
    ConditionHeadersNotSupported = 400 "Condition headers are not supported.";
    ConditionNotMet = 412 "The condition specified using HTTP conditional header(s) is not met.";
    ContainerAlreadyExists = 409 "The specified container already exists.";
    ContainerBeingDeleted = 409 "The specified container is being deleted. Try operation later.";
    ContainerNotFound = 404 "The specified container does not exist.";
    ContentLengthLargerThanTierLimit = 409 "The blob's content length cannot exceed its tier limit.";
    CopyAcrossAccountsNotSupported = 400 "The copy source account and destination account must be the same."
        "Later versions copy from other accounts too.";
    CopyIdMismatch = 409 "The specified copy ID did not match the copy ID for the pending copy operation.";
    CorsPreflightFailure = 403 "CORS not enabled or no matching rule found for this request.";
    Crc64Mismatch = 400 "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.";
    DirectorySasNotSupportedVersion = 409 own "Signatures for directories are of a later version.";
    EmptyMetadataKey = 400 "The key for one of the metadata key-value pairs is empty.";
    ExceedsMaxBatchRequestCount = 400 "The batch operation exceeds maximum number of allowed subrequests.";
    ErrorProcessingQueryExpression = 400 own "The query expression cannot be processed.";
    FeatureVersionMismatch = 409 "The type of blob in the container is unrecognized by this version.";
    IncrementalCopyBlobMismatch = 409 "The specified source blob is different than the copy source of the existing incremental copy blob.";
    IncrementalCopyOfEarlierVersionSnapshotNotAllowed = 409 "The specified snapshot is earlier than the last snapshot copied into the incremental copy blob.";
    IncrementalCopySourceMustBeSnapshot = 409 "The source for incremental copy request must be a snapshot.";
    InfiniteLeaseDurationRequired = 412 "The lease ID matched, but the specified lease must be an infinite-duration lease.";
    InsufficientAccountPermissions = 403 "The account being accessed does not have sufficient permissions to execute this operation.";
    InternalError = 500 "The server encountered an internal error. Please retry the request.";
    InvalidAuthenticationInfo = 400 "Authentication information is not given in the correct format. Check the value of Authorization header.";
    InvalidBlobOrBlock = 400 "The specified blob or block content is invalid."
        "The ids of the blocks of a blob must all be of the same length.";
    InvalidBlobTier = 400 "The specified blob tier is invalid.";
    InvalidBlobType = 409 "The blob type is invalid for this operation.";
    InvalidBlockId = 400 "The specified block ID is invalid. The block ID must be Base64-encoded.";
    InvalidBlockList = 400 "The specified block list is invalid."
        "It names a block that is not there, or one block in two ways.";
    InvalidHeaderValue = 400 "The value for one of the HTTP headers is not in the correct format.";
    InvalidHttpVerb = 400 "The HTTP verb specified was not recognized by the server.";
    InvalidInput = 400 "One of the request inputs is not valid.";
    InvalidMarker = 400 "The specified marker is invalid.";
    InvalidMd5 = 400 "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded.";
    InvalidMetadata = 400 "The metadata specified is invalid. It has characters that are not permitted.";
    InvalidOperation = 400 "Invalid operation against a blob snapshot.";
    InvalidPageRange = 416 "The page range specified is invalid."
        "It must be one of whole pages within the blob.";
    InvalidQueryParameterValue = 400 "Value for one of the query parameters specified in the request URI is invalid.";
    InvalidRange = 416 "The range specified is invalid for the current size of the resource.";
    InvalidResourceName = 400 "The specified resource name contains invalid characters.";
    InvalidSourceBlobType = 409 "The copy source blob type is invalid for this operation.";
    InvalidSourceBlobUrl = 409 "The source URL for incremental copy request must be valid Azure Storage blob URL."
        "It must be that of a blob on this server.";
    InvalidUri = 400 "The requested URI does not represent any resource on the server.";
    InvalidVersionForPageBlobOperation = 400 "All operations on page blobs require at least version 2009-09-19.";
    InvalidXmlDocument = 400 "XML specified is not syntactically valid.";
    InvalidXmlNodeValue = 400 "The value for one of the XML nodes is not in the correct format.";
    LeaseAlreadyBroken = 409 "The lease has already been broken and cannot be broken again.";
    LeaseAlreadyPresent = 409 "There is already a lease present.";
    LeaseIdMismatchWithBlobOperation = 412 "The lease ID specified did not match the lease ID for the blob.";
    LeaseIdMismatchWithContainerOperation = 412 "The lease ID specified did not match the lease ID for the container.";
    LeaseIdMismatchWithLeaseOperation = 409 "The lease ID specified did not match the lease ID for the blob.";
    LeaseIdMissing = 412 "There is currently a lease on the blob and no lease ID was specified in the request.";
    LeaseIsBreakingAndCannotBeAcquired = 409 "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.";
    LeaseIsBreakingAndCannotBeChanged = 409 "The lease ID matched, but the lease is currently in breaking state and cannot be changed.";
    LeaseIsBrokenAndCannotBeRenewed = 409 "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.";
    LeaseLost = 412 "A lease ID was specified, but the lease for the blob has expired.";
    LeaseNotPresentWithBlobOperation = 412 "There is currently no lease on the blob.";
    LeaseNotPresentWithContainerOperation = 412 "There is currently no lease on the container.";
    LeaseNotPresentWithLeaseOperation = 409 "There is currently no lease on the blob.";
    MaxBlobSizeConditionNotMet = 412 "The max blob size condition specified was not met.";
    Md5Mismatch = 400 "The MD5 value specified in the request did not match with the MD5 value calculated by the server.";
    MessageNotFound = 404 "The specified message does not exist."
        "Or the pop receipt is not its current one.";
    MessageTooLarge = 400 "The message exceeds the maximum allowed size.";
    MetadataTooLarge = 400 "The metadata specified exceeds the maximum permissible limit.";
    MissingContentLengthHeader = 411 "The Content-Length header was not specified.";
    MissingRequiredHeader = 400 "An HTTP header that's mandatory for this request is not specified.";
    MissingRequiredQueryParameter = 400 "A query parameter that's mandatory for this request is not specified.";
    MissingRequiredXmlNode = 400 "A required XML node was not specified in the request body.";
    MultipleConditionHeadersNotSupported = 400 "Multiple condition headers are not supported.";
    NoAuthenticationInformation = 401 "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    NoPendingCopyOperation = 409 "There is currently no pending copy operation.";
    NotImplemented = 501 "The requested operation is not implemented on the specified resource."
        "It is known but not served yet.";
    OperationNotAllowedOnIncrementalCopyBlob = 409 "The specified operation is not allowed on an incremental copy blob.";
    OperationNotAllowedOnRootBlob = 403 "The specified operation is not allowed on root blob."
        "The current version is deleted as the blob itself, not by its version id.";
    OperationTimedOut = 500 "Operation could not be completed within the specified time.";
    OutOfRangeInput = 400 "One of the request inputs is out of range.";
    OutOfRangeQueryParameterValue = 400 "One of the query parameters specified in the request URI is outside the permissible range.";
    PendingCopyOperation = 409 "There is currently a pending copy operation.";
    PopReceiptMismatch = 400 "The specified pop receipt did not match the pop receipt for a dequeued message.";
    PreviousSnapshotCannotBeNewer = 400 "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value.";
    PreviousSnapshotNotFound = 409 "The previous snapshot is not found.";
    PublicAccessNotPermitted = 409 "Public access is not permitted on this storage account.";
    QueryParameterSasMandatory = 403 own "A query parameter of the signature is missing.";
    QueryParameterSddInvalid = 403 own "The directory depth of the signature does not fit the path.";
    QueueAlreadyExists = 409 "The specified queue already exists."
        "Its metadata is not that of the request.";
    QueueBeingDeleted = 409 "The specified queue is being deleted.";
    QueueNotFound = 404 "The specified queue does not exist.";
    RequestBodyTooLarge = 413 "The request body is too large and exceeds the maximum permissible limit.";
    RequestForbiddenByContainerEncryptionPolicy = 403 "The request is forbidden by the container encryption policy."
        "The container fixes another encryption scope.";
    RequestUrlFailedToParse = 400 "The url in the request could not be parsed.";
    ResourceNotFound = 404 "The specified resource does not exist.";
    SequenceNumberConditionNotMet = 412 "The sequence number condition specified was not met.";
    SequenceNumberIncrementTooLarge = 409 "The sequence number increment cannot be performed because it would result in overflow of the sequence number.";
    ServerBusy = 503 "The server is busy."
        "Please retry the request.";
    SnapshotCountExceeded = 409 "The snapshot count against this blob has been exceeded.";
    SnapshotOperationRateExceeded = 409 "The rate of snapshot operations against this blob has been exceeded."
        "A page blob with a tier can have a snapshot every ten minutes.";
    SnapshotsPresent = 409 "This operation is not permitted because the blob has snapshots."
        "The request does not say what becomes of them.";
    SourceConditionNotMet = 412 "The source condition specified using HTTP conditional header(s) is not met.";
    CannotConvertToSddlDueToCustomAce = 400 "Permissions cannot be converted to SDDL due to the presence of custom ACE in the ACLs.";
    DeleteShareWhenSnapshotLeased = 409 "Unable to delete share because one or more share snapshots have active leases.";
    FileInvalidPermission = 400 "The specified file permission is not valid.";
    FileInvalidPermissionKey = 400 "The specified file permission key does not exist in the share.";
    LeaseIdMismatchWithShareOperation = 412 "The lease ID specified did not match the lease ID for the file share.";
    LeaseNotPresentWithShareOperation = 412 "There is currently no lease on the file share.";
    CannotDeleteFileOrDirectory = 409 "The file or directory could not be deleted because it is in use by an SMB client."
        "Or it is the root of the share, which cannot be deleted, moved or replaced.";
    DirectoryNotEmpty = 409 "The specified directory is not empty.";
    FileGenerationMismatch = 409 "The file has been recreated since the previous snapshot was taken."
        "Or it was renamed.";
    InvalidFileOrDirectoryPathName = 400 "The specified file or directory path name is invalid."
        "It has characters that are not allowed, or is reserved.";
    LeaseIdMismatchWithFileOperation = 412 "The lease ID specified did not match the lease ID for the file.";
    LeaseNotPresentWithFileOperation = 412 "There is currently no lease on the file.";
    // The list of codes says 500, the page on locks 408: the client may retry, and the server has not
    // failed.
    ClientCacheFlushDelay = 408 "The specified resource state could not be flushed from an SMB client in the specified time.";
    FileLockConflict = 409 "A portion of the specified file is locked by an SMB client.";
    // The list of codes calls it DeletePending, the page on locks SMBDeletePending.
    SMBDeletePending = 409 "The specified resource is marked for deletion by an SMB client.";
    SharingViolation = 409 "The specified resource may be in use by an SMB client.";
    ParentNotFound = 404 "The specified parent path does not exist.";
    ReadOnlyAttribute = 409 "The specified resource is read-only and cannot be modified at this time.";
    ResourceAlreadyExists = 409 "The specified resource already exists.";
    ResourceTypeMismatch = 409 "The specified resource type does not match the type of the existing resource.";
    ShareSizeLimitReached = 403 own "The share would become larger than its quota.";
    ShareAlreadyExists = 409 "The specified share already exists.";
    ShareBeingDeleted = 409 "The specified share is being deleted. Try operation later.";
    ShareHasSnapshots = 409 "The share has snapshots and the operation requires no snapshots.";
    ShareNotFound = 404 "The specified share does not exist.";
    ShareSnapshotCountExceeded = 409 "The total number of snapshots for the share is over the limit.";
    ShareSnapshotNotFound = 404 own "The share has no snapshot of this moment.";
    TagsTooLarge = 400 "The tags specified exceed the maximum permissible limit.";
    InvalidTag = 400 "The tags specified are invalid. It contains characters that are not permitted.";
    EmptyTagName = 400 "The name of one of the tag key-value pairs is empty.";
    DuplicateTagNames = 400 "The tags specified contain duplicate names.";
    TargetConditionNotMet = 412 "The target condition specified using HTTP conditional header(s) is not met.";
    UnauthorizedBlobOverwrite = 403 "This request is not authorized to perform blob overwrites.";
    AtomFormatNotSupported = 415 "Atom format is not supported.";
    CommandsInBatchActOnDifferentPartitions = 400 "All commands in a batch must operate on same entity group.";
    DuplicatePropertiesSpecified = 400 "A property is specified more than one time.";
    EntityAlreadyExists = 409 "The specified entity already exists.";
    EntityTooLarge = 400 "The entity is larger than the maximum allowed size (1MB).";
    InvalidDuplicateRow = 400 "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.";
    InvalidValueType = 400 "The value specified is invalid.";
    JsonFormatNotSupported = 415 "JSON format is not supported."
        "This version, or the data service version of the request, does not have it.";
    MediaTypeNotSupported = 415 "None of the provided media types are supported";
    MethodNotAllowed = 405 "The requested method is not allowed on the specified resource.";
    PropertiesNeedValue = 400 "The values are not specified for all properties in the entity.";
    PropertyNameInvalid = 400 "The property name is invalid.";
    PropertyNameTooLong = 400 "The property name exceeds the maximum allowed length (255).";
    PropertyValueTooLarge = 400 "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.";
    TableAlreadyExists = 409 "The table specified already exists.";
    TableBeingDeleted = 409 "The specified table is being deleted. Try operation later.";
    TableNotFound = 404 "The table specified does not exist.";
    TooManyProperties = 400 "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties.";
    UpdateConditionNotSatisfied = 412 "The update condition specified in the request was not satisfied.";
    UnsatisfiableCondition = 400 "The request includes an unsatisfiable condition for this operation.";
    UnsupportedHeader = 400 "One of the HTTP headers specified in the request is not supported.";
    UnsupportedHttpVerb = 405 "The resource doesn't support specified Http Verb.";
    UnsupportedQueryParameter = 400 "One of the query parameters specified in the request URI is not supported.";
    UnsupportedXmlNode = 400 "One of the XML nodes specified in the request body is not supported.";
    WebContentNotFound = 404 "The requested content does not exist.";
    XMethodIncorrectCount = 400 "More than one X-HTTP-Method is specified.";
    XMethodIncorrectValue = 400 "The specified X-HTTP-Method is invalid.";
    XMethodNotUsingPost = 400 "The request uses X-HTTP-Method with an HTTP verb other than POST.";
}

/// The content type of table errors.
pub const JSON_CONTENT_TYPE: &str =
    "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";

/// An answer other than success, as told to the client. Details for the log only are not in it.
#[derive(Debug)]
pub struct Error {
    pub code: Code,
    /// If it differs from the code's own: a condition that is not met is 304 on a read.
    status: Option<StatusCode>,
    /// If it differs from the code's own.
    message: Option<Cow<'static, str>>,
    /// An addition to the message.
    explanation: Option<Cow<'static, str>>,
    /// Elements of the body besides code and message.
    details: Vec<(&'static str, String)>,
    /// Headers of the answer.
    headers: Vec<(&'static str, String)>,
}

impl From<Code> for Error {
    fn from(code: Code) -> Self {
        Self {
            code,
            status: None,
            message: None,
            explanation: None,
            details: Vec::new(),
            headers: Vec::new(),
        }
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

    /// Adds to the message.
    #[must_use]
    pub fn explain(mut self, explanation: impl Into<Cow<'static, str>>) -> Self {
        self.explanation = Some(explanation.into());
        self
    }

    /// The same for another kind of resource, if the message names a blob.
    #[must_use]
    pub fn about(self, noun: &str) -> Self {
        const BLOB: &str = "the blob";
        let message = self.code.message();
        if !message.contains(BLOB) {
            return self;
        }
        self.with_message(message.replace(BLOB, &format!("the {noun}")))
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

    pub fn secondary_is_read_only() -> Self {
        Self::from(Code::InsufficientAccountPermissions)
            .with_message("Write operations are not allowed.")
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
        answer.reason = self.reason(service);
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

    /// The answer as a page, for browsers.
    pub fn page(&self, request_id: &str, bodiless: bool) -> Answer {
        let mut answer = website::page(self.status(), self.code, request_id, bodiless);
        for (name, value) in &self.headers {
            answer.header(name, value);
        }
        answer
    }

    /// The same with a prefix to its message.
    #[must_use]
    pub fn with_message_prefix(mut self, prefix: impl std::fmt::Display) -> Self {
        self.explanation = self.explanation().map(|text| text.to_owned().into());
        let message = format!("{prefix}{}", self.sentence());
        self.with_message(message)
    }

    pub fn sentence(&self) -> &str {
        self.message.as_deref().unwrap_or(self.code.message())
    }

    fn explanation(&self) -> Option<&str> {
        let of_code = || self.code.explanation().filter(|_| self.message.is_none());
        self.explanation.as_deref().or_else(of_code)
    }

    /// The reason phrase. Tables use that of HTTP, the others their sentence: clients show it, and
    /// some search for it.
    fn reason(&self, service: Service) -> Option<Box<str>> {
        let sentence = match service {
            Service::Blob | Service::Queue | Service::File => self.sentence(),
            Service::Table => return None,
        };
        let fits = sentence.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        fits.then(|| sentence.into())
    }

    fn xml(&self, id: RequestId, now: Timestamp) -> String {
        const REASON: &str = "Reason";
        let message = format!("{}\nRequestId:{id}\nTime:{}", self.sentence(), now.iso8601());
        let mut body = format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{}</Code><Message>{}</Message>",
            self.code.name(),
            escape(message),
        );
        let reasoned = self.details.iter().any(|(element, _)| *element == REASON);
        let explanation = self.explanation().filter(|_| !reasoned).map(|text| (REASON, text));
        let details = self.details.iter().map(|(element, value)| (*element, value.as_str()));
        for (element, value) in details.chain(explanation) {
            let value: String = value.chars().filter(|letter| xml::is_character(*letter)).collect();
            body.push_str(&format!("<{element}>{}</{element}>", escape(value.as_str())));
        }
        body.push_str("</Error>");
        body
    }

    /// The body of the answer for tables. It has no elements for details.
    pub fn json(&self, id: RequestId, now: Timestamp) -> String {
        let mut message = self.sentence().to_owned();
        if let Some(explanation) = self.explanation() {
            message.push('\n');
            message.push_str(explanation);
        }
        message.push_str(&format!("\nRequestId:{id}\nTime:{}", now.iso8601()));
        serde_json::json!({
            "odata.error": {
                "code": self.code.name(),
                "message": { "lang": "en-US", "value": message },
            }
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::failure::Fault;

    use super::*;

    fn answer(error: Error, service: Service) -> (String, String) {
        let answer = error.answer(service, RequestId::next(), Timestamp::default(), false);
        let AnswerBody::Whole(body) = &answer.body else { panic!("a body") };
        (answer.reason().to_owned(), String::from_utf8_lossy(body).into_owned())
    }

    #[test]
    fn a_message_begins_with_the_sentence_of_the_service() {
        let error = || Error::from(Code::QueueNotFound);
        for service in [Service::Blob, Service::Queue, Service::File] {
            let (reason, body) = answer(error(), service);
            assert_eq!(reason, "The specified queue does not exist.");
            let begin = "<Message>The specified queue does not exist.\nRequestId:";
            assert!(body.contains(begin), "{body}");
        }
        let (reason, body) = answer(error(), Service::Table);
        assert_eq!(reason, "Not Found");
        let begin = r#""value":"The specified queue does not exist.\nRequestId:"#;
        assert!(body.contains(begin), "{body}");
    }

    #[test]
    fn what_we_add_stands_behind_the_sentence() {
        let busy = || Error::from(Code::ServerBusy);
        let (reason, body) = answer(busy().explain("The disk is <full>."), Service::Blob);
        assert_eq!(reason, "The server is busy.");
        assert!(body.contains("<Message>The server is busy.\nRequestId:"), "{body}");
        assert!(body.contains("</Message><Reason>The disk is &lt;full&gt;.</Reason>"), "{body}");
        let (_, body) = answer(busy().detail("Reason", "Another."), Service::Blob);
        assert!(body.contains("</Message><Reason>Another.</Reason></Error>"), "{body}");
        let (_, body) = answer(busy().with_message_prefix("7:"), Service::Table);
        let begin = r#""value":"7:The server is busy.\nPlease retry the request.\nRequestId:"#;
        assert!(body.contains(begin), "{body}");
    }

    #[test]
    fn a_shortage_is_told_in_the_words_of_the_service() {
        const EMFILE: i32 = 24;
        let fault = Fault::because("a file", std::io::Error::from_raw_os_error(EMFILE));
        let (reason, body) = answer(fault.into(), Service::Blob);
        assert_eq!(reason, "The server is busy.");
        assert!(body.contains("<Reason>The server cannot open more files now."), "{body}");
    }

    #[test]
    fn what_cannot_stand_behind_a_status_does_not() {
        for text in ["two\r\nlines", "grün", "\u{7f}"] {
            let (reason, _) =
                answer(Error::from(Code::InvalidInput).with_message(text), Service::Blob);
            assert_eq!(reason, "Bad Request", "{text:?}");
        }
    }

    #[test]
    fn a_message_names_what_is_leased() {
        let (reason, _) =
            answer(Error::from(Code::LeaseIdMissing).about("container"), Service::Blob);
        assert_eq!(
            reason,
            "There is currently a lease on the container and no lease ID was specified in the request."
        );
        let (reason, _) =
            answer(Error::from(Code::ContainerNotFound).about("container"), Service::Blob);
        assert_eq!(reason, "The specified container does not exist.");
    }
}
