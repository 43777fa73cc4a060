//! Every refusal of authentication and authorization.

use std::sync::Arc;

/// Why a request was refused. Each variant is an outcome the client can tell apart; its
/// documentation names the status and the code of the error mapping.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthRefusal {
    /// 403 `AuthenticationFailed`, with `detail` as AuthenticationErrorDetail: wrong signature,
    /// expired or not yet valid, date outside the allowed skew, malformed signature parameters.
    ///
    /// The detail can repeat the signed text, so it is for the client only and never logged.
    #[error("authentication failed")]
    AuthenticationFailed { detail: String },
    /// 400 `InvalidAuthenticationInfo`: an Authorization header that cannot be read.
    #[error("the Authorization header is not in the right format: {detail}")]
    InvalidAuthenticationInfo { detail: &'static str },
    /// 401 `InvalidAuthenticationInfo`, with `challenge` as WWW-Authenticate: a Bearer token that
    /// is not accepted.
    #[error("the token is not accepted: {detail}")]
    InvalidToken { detail: &'static str, challenge: Option<Arc<str>> },
    /// 401 `NoAuthenticationInformation`, with `challenge` as WWW-Authenticate: no credentials,
    /// where some are needed.
    #[error("no authentication information was given")]
    NoAuthenticationInformation { challenge: Option<Arc<str>> },
    /// 404 `ResourceNotFound`: no credentials and a version before 2019-12-12, which hides private
    /// resources; also an account that is not served.
    #[error("the resource does not exist or is hidden from this caller")]
    ResourceNotFound,
    /// 409 `PublicAccessNotPermitted`: the account allows no anonymous access.
    #[error("public access is not permitted on this account")]
    PublicAccessNotPermitted,
    /// 400 `InvalidHeaderValue`, with HeaderName: a signed header that is sent twice.
    #[error("the header {name} is sent more than once")]
    DuplicateHeader { name: String },
    /// 400 `InvalidQueryParameterValue`, with QueryParameterName: a parameter of a shared access
    /// signature that is sent twice.
    #[error("the query parameter {name} is sent more than once")]
    DuplicateQueryParameter { name: &'static str },
    /// 400 `InvalidQueryParameterValue`, with QueryParameterName: the field is in both the token
    /// and its stored access policy.
    #[error("{name} is given by the token and by its stored access policy")]
    FieldInPolicyAndToken { name: &'static str },
    /// 403 `AuthenticationFailed`: the stored access policy does not exist.
    #[error("the stored access policy does not exist")]
    PolicyNotFound,
    /// 403 `AuthorizationSourceIPMismatch`.
    #[error("the source address is not in the signed range")]
    SourceIpMismatch,
    /// 403 `AuthorizationProtocolMismatch`.
    #[error("the protocol is not one of the signed ones")]
    ProtocolMismatch,
    /// 403 `AuthorizationServiceMismatch`.
    #[error("the service is not one of the signed ones")]
    ServiceMismatch,
    /// 403 `AuthorizationResourceTypeMismatch`.
    #[error("the resource type is not one of the signed ones")]
    ResourceTypeMismatch,
    /// 403 `AuthorizationPermissionMismatch`; 404 `ResourceNotFound` for a shared access signature
    /// of a version before 2015-04-05 (`hidden`).
    #[error("the permissions do not cover the operation")]
    PermissionMismatch { hidden: bool },
    /// 403 `AuthorizationFailure`: the operation is not available to this kind of credentials.
    #[error("the operation is not available to these credentials")]
    AuthorizationFailure,
    /// 403 `QueryParameterSasMandatory`, with QueryParameterName.
    #[error("the query parameter {name} is mandatory")]
    SasParameterMandatory { name: &'static str },
    /// 409 `DirectorySasNotSupportedVersion`
    #[error("signatures for directories are of a later version")]
    DirectorySasNotSupported,
    /// 403 `QueryParameterSddInvalid`: the signed depth is not the depth of the directory.
    #[error("sdd does not fit the path")]
    DirectoryDepthInvalid,
}

impl AuthRefusal {
    pub(super) fn failed(detail: impl Into<String>) -> Self {
        Self::AuthenticationFailed { detail: detail.into() }
    }
}
