//! Why a request must be refused: statuses and codes, any of which is right if servers differ.

pub type Reasons = Vec<(u16, &'static str)>;
