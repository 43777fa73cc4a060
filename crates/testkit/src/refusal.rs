//! Why a request must be refused: statuses and codes, any of which is right where servers differ.

pub type Reasons = Vec<(u16, &'static str)>;

/// Whether an answer gives one of the reasons.
pub fn is_among(reasons: &Reasons, status: u16, code: &str) -> bool {
    reasons.contains(&(status, code))
}
