//! The answers to refusals of the Queue service.

use holdfast_domain::queue::{MessageRefusal, QueueRefusal};

use super::parameters::VISIBILITY_TIMEOUT;
use crate::error::{Code, Error};

impl From<QueueRefusal> for Error {
    fn from(refusal: QueueRefusal) -> Self {
        match refusal {
            QueueRefusal::NotFound => Code::QueueNotFound,
            QueueRefusal::AlreadyExists => Code::QueueAlreadyExists,
            QueueRefusal::BeingDeleted => Code::QueueBeingDeleted,
        }
        .into()
    }
}

impl From<MessageRefusal> for Error {
    fn from(refusal: MessageRefusal) -> Self {
        match refusal {
            MessageRefusal::QueueNotFound => Code::QueueNotFound.into(),
            MessageRefusal::NotFound => Code::MessageNotFound.into(),
            MessageRefusal::ReceiptOfOther => Code::PopReceiptMismatch.into(),
            MessageRefusal::InvisiblePastExpiry { seconds_max } => {
                Self::from(Code::OutOfRangeQueryParameterValue)
                    .detail("QueryParameterName", VISIBILITY_TIMEOUT)
                    .detail("MinimumAllowed", "0")
                    .detail("MaximumAllowed", seconds_max.to_string())
                    .detail("Reason", "The message expires before it would become visible.")
            }
        }
    }
}
