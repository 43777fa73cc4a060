//! The headers that every answer has, and those of CORS.

use std::sync::Arc;

use holdfast_domain::account::ServiceProperties;
use hyper::{Method, StatusCode};

use super::Frontend;
use super::exchange::Seen;
use crate::answer::Answer;
use crate::connection::Parts;
use crate::cors;
use crate::error::Error;
use crate::headers::RequestHeaders;
use crate::headers::date::with_date;
use crate::request::RequestId;
use crate::service::Service;
use crate::version::Version;

/// A longer one is not returned.
const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

impl Frontend {
    pub(super) async fn preflight(
        &self,
        service: Service,
        seen: &Seen,
        headers: &RequestHeaders,
    ) -> Result<Answer, Error> {
        let properties = self.properties(service, seen).await?;
        let allowed = cors::preflight(&properties.cors, headers)?;
        let mut answer = Answer::new(StatusCode::OK);
        for (name, value) in allowed {
            answer.header(name, value);
        }
        Ok(answer)
    }

    pub(super) async fn common_headers(
        &self,
        answer: &mut Answer,
        service: Service,
        id: RequestId,
        parts: &Parts,
        seen: &Seen,
    ) {
        answer.header("server", service.server_header());
        answer.show("x-ms-request-id", id);
        with_date(self.domain.now(), |date| answer.header("date", date));
        let version = seen.version.unwrap_or(Version::V2009_09_19);
        if let Some(version) = seen.version {
            if !seen.keeps_version {
                answer.show("x-ms-version", version);
            }
            if version < Version::V2017_07_29 {
                answer.headers.remove("x-ms-error-code");
            }
            if version < Version::V2011_08_18 && answer.status == StatusCode::NOT_MODIFIED {
                unquote_etag(answer);
            }
        }
        let client_id = parts.headers.text("x-ms-client-request-id");
        let fits = |id: &&str| id.len() <= CLIENT_REQUEST_ID_BYTES_MAX;
        if let Some(client_id) = client_id.filter(fits)
            && version >= Version::V2019_02_02
        {
            answer.header("x-ms-client-request-id", client_id);
        }
        if parts.method == Method::OPTIONS {
            return;
        }
        let for_origin = |properties: &Arc<ServiceProperties>| {
            cors::actual(&properties.cors, &parts.method, &parts.headers, &answer.headers)
        };
        match self.with_properties(service, seen, for_origin).await {
            Ok(added) => {
                for (name, value) in added {
                    answer.header(name, value);
                }
            }
            Err(error) => tracing::error!(?error, "the CORS rules cannot be read"),
        }
    }
}

/// A refusal does not know the version of the request; ETags had no quotes before 2011-08-18.
fn unquote_etag(answer: &mut Answer) {
    let quoted = answer.headers.get("etag");
    let unquoted = quoted.map(|etag| etag.trim_matches('"').to_owned());
    if let Some(etag) = unquoted {
        answer.headers.set_named("etag", &etag);
    }
}
