//! Which conditions a request may carry: those of its operation.

use crate::error::{Code, Error};
use crate::headers::RequestHeaders;
use crate::operation::{Conditions, Operation};

/// A condition that the operation does not check must not be ignored silently.
pub(super) fn check_conditions(
    operation: Operation,
    headers: &RequestHeaders,
) -> Result<(), Error> {
    let accepted = operation.row().conditions;
    let known = [
        ("if-match", Conditions::IF_MATCH),
        ("if-none-match", Conditions::IF_NONE_MATCH),
        ("if-modified-since", Conditions::IF_MODIFIED_SINCE),
        ("if-unmodified-since", Conditions::IF_UNMODIFIED_SINCE),
        ("x-ms-if-tags", Conditions::TAGS),
    ];
    let mut unknown = known.into_iter().filter(|(_, condition)| !accepted.contains(*condition));
    if unknown.any(|(name, _)| headers.contains(name)) {
        return Err(Code::ConditionHeadersNotSupported.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::BlobOperation;

    #[test]
    fn each_operation_takes_its_conditions_and_no_other() {
        let names = [
            "if-match",
            "if-none-match",
            "if-modified-since",
            "if-unmodified-since",
            "x-ms-if-tags",
        ];
        let four = [true, true, true, true, false];
        for (cell, operation, expected) in [
            ("1.6 Put Block", Operation::Blob(BlobOperation::PutBlock), [false; 5]),
            ("1.6 Create Container", Operation::Blob(BlobOperation::CreateContainer), [false; 5]),
            ("1.6 Append Blob Seal", Operation::Blob(BlobOperation::SealAppendBlob), four),
            ("1.6 Get Blob", Operation::Blob(BlobOperation::GetBlob), [true; 5]),
            ("1.6 Put Blob", Operation::Blob(BlobOperation::PutBlockBlob), [true; 5]),
            ("1.6 Lease Blob", Operation::Blob(BlobOperation::AcquireBlobLease), [true; 5]),
            (
                "1.6 Get Block List",
                Operation::Blob(BlobOperation::GetBlockList),
                [false, false, false, false, true],
            ),
            (
                "1.6 Delete Container",
                Operation::Blob(BlobOperation::DeleteContainer),
                [false, false, true, true, false],
            ),
            (
                "1.6 Set Container Metadata",
                Operation::Blob(BlobOperation::SetContainerMetadata),
                [false, false, true, false, false],
            ),
            (
                "1.6 Set Blob Immutability Policy",
                Operation::Blob(BlobOperation::SetBlobImmutabilityPolicy),
                [false, false, false, true, false],
            ),
        ] {
            assert!(
                check_conditions(operation, &RequestHeaders::default()).is_ok(),
                "{cell}: none sent"
            );
            for (name, taken) in names.into_iter().zip(expected) {
                let sent = RequestHeaders::from_iter([(name, "x")]);
                let code = check_conditions(operation, &sent).err().map(|error| error.code);
                let refused = (!taken).then_some(Code::ConditionHeadersNotSupported);
                assert_eq!(code, refused, "{cell}: {name}");
            }
        }
    }
}
