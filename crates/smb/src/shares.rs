//! The shares of an account, as the domain has them.

use holdfast_domain::Domain;

use crate::status::Status;

/// A share that a tree is connected to.
#[derive(Clone, Debug)]
pub struct Share {
    pub name: String,
}

pub async fn list(_domain: &Domain, _account: &str) -> Result<Vec<String>, Status> {
    Ok(vec!["stub".to_owned()])
}

pub async fn find(_domain: &Domain, _account: &str, name: &str) -> Result<Option<Share>, Status> {
    Ok(name.eq_ignore_ascii_case("stub").then(|| Share { name: "stub".to_owned() }))
}
