//! SESSION_SETUP: logon and reauthentication, [MS-SMB2] 3.3.5.5.

use std::sync::Arc;

use super::Result;
use crate::answer::Answer;
use crate::auth::{Authenticated, Exchange, Refused, Step};
use crate::call::Call;
use crate::connection::Ending;
use crate::crypto::SigningAlgorithm;
use crate::crypto::signing::Origin;
use crate::dialect::Dialect;
use crate::frontend::random;
use crate::info::time;
use crate::session::{Established, Requirements, Session};
use crate::settings::Signing;
use crate::status::Status;
use crate::wire::Flags;
use crate::wire::negotiate::SIGNING_REQUIRED;
use crate::wire::session_setup::{BINDING, Request, Response, SESSION_ENCRYPTS};

pub async fn handle(call: &mut Call) -> Result {
    let request = Request::decode(&call.message)?;
    if request.flags & BINDING != 0 {
        return Err(refuse_binding(call)?);
    }
    let session = match call.header.session_id {
        0 => call.connection.new_session().ok_or(Status::INSUFFICIENT_RESOURCES)?,
        id => match call.connection.session(id) {
            Some(session) => session,
            None => {
                // Only sets the session, so that the refusal is signed if the request is.
                let _ = find_elsewhere(call);
                return Err(Status::USER_SESSION_DELETED);
            }
        },
    };
    call.session = Some(Arc::clone(&session));
    let answered = authenticate(call, &session, &request).await;
    if answered.as_ref().is_err() {
        // A client that fails to authenticate (again) has no session (any more).
        call.session = None;
        call.connection.end_session(&session, Ending::LoggedOff).await;
    }
    answered
}

async fn authenticate(call: &mut Call, session: &Arc<Session>, request: &Request) -> Result {
    let is_new = session.established().is_none();
    let hashes = is_new && dialect(call) == Some(Dialect::Smb3_1_1);
    if hashes {
        session.preauth.lock().add(&call.message);
    }
    let frontend = Arc::clone(&call.connection.frontend);
    let now = time::to_wire(frontend.domain.now());
    let mut exchange = session.exchange.lock().await;
    let step = exchange.get_or_insert_with(Exchange::default).step(
        &frontend.settings.accounts,
        &request.security_token,
        random(),
        now,
    );
    let done = match step {
        Ok(Step::Continue(security_token)) => {
            if hashes {
                call.preauth = Some(Arc::clone(&session.preauth));
            }
            let response = Response { flags: 0, security_token };
            let status = Status::MORE_PROCESSING_REQUIRED;
            return Ok(Answer::new(status, |out| response.encode(out)));
        }
        Ok(Step::Done(done)) => done,
        Err(Refused::LogonFailure) => return Err(Status::LOGON_FAILURE),
        Err(Refused::Malformed) => return Err(Status::INVALID_PARAMETER),
    };
    *exchange = None;
    drop(exchange);
    let Authenticated { user, session_key, token } = done;
    match session.established() {
        Some(established) if established.user.account != user.account => {
            return Err(Status::ACCESS_DENIED);
        }
        Some(_) => {}
        None => {
            let negotiated = call.connection.negotiated().ok_or(Status::INVALID_PARAMETER)?;
            let preauth = session.preauth.lock().clone();
            let requirements = requirements(call, request);
            let established =
                Established::new(user.clone(), &session_key, negotiated, preauth, requirements);
            if requirements.encryption && !established.encryption_required {
                tracing::info!(
                    peer = %call.connection.peer,
                    "an SMB client that cannot encrypt was refused (see --smb-encryption)"
                );
                return Err(Status::ACCESS_DENIED);
            }
            session.establish(established);
            if request.previous_session_id != 0 && request.previous_session_id != session.id {
                frontend.end_previous(request.previous_session_id, &user.account).await;
            }
            frontend.logged_on(session, &call.connection);
        }
    }
    call.must_sign = true;
    let encrypts = session.established().is_some_and(|it| it.encryption_required);
    let flags = if encrypts { SESSION_ENCRYPTS } else { 0 };
    let response = Response { flags, security_token: token };
    Ok(Answer::success(|out| response.encode(out)))
}

fn dialect(call: &Call) -> Option<Dialect> {
    call.connection.negotiated().map(|negotiated| negotiated.dialect)
}

fn requirements(call: &Call, request: &Request) -> Requirements {
    let settings = &call.connection.frontend.settings;
    let client_requires = u16::from(request.security_mode) & SIGNING_REQUIRED != 0;
    Requirements {
        signing: client_requires || settings.signing == Signing::Required,
        encryption: settings.encryption.is_required_from(call.connection.peer),
    }
}

/// The session of another connection whose key has signed the request. The refusal is signed, too,
/// so that the client accepts it.
fn find_elsewhere(call: &mut Call) -> Result<Arc<Session>> {
    let session = call.connection.frontend.session(call.header.session_id);
    let session = session.ok_or(Status::USER_SESSION_DELETED)?;
    let established = session.established().ok_or(Status::USER_SESSION_DELETED)?;
    if !call.header.flags.contains(Flags::SIGNED) {
        return Err(Status::INVALID_PARAMETER);
    }
    let message_id = call.header.message_id;
    let origin = Origin { message_id, is_from_server: false, is_cancel: false };
    if !established.signer.verifies(&call.message, &call.header.signature, origin) {
        return Err(Status::ACCESS_DENIED);
    }
    call.must_sign = true;
    call.session = Some(Arc::clone(&session));
    Ok(session)
}

/// A session has one connection here and is never bound to another. Other errors of the request
/// come first, as clients expect.
fn refuse_binding(call: &mut Call) -> Result<Status> {
    let session = find_elsewhere(call)?;
    let negotiated = call.negotiated()?;
    let established = session.established().ok_or(Status::USER_SESSION_DELETED)?;
    let signs_by_gmac =
        [established.signing, negotiated.signing].map(|it| it == SigningAlgorithm::AesGmac);
    Ok(match signs_by_gmac {
        [true, false] => Status::REQUEST_OUT_OF_SEQUENCE,
        [false, true] => Status::NOT_SUPPORTED,
        [true, true] | [false, false] => {
            let is_alike = established.dialect == negotiated.dialect
                && established.cipher == negotiated.cipher;
            if negotiated.dialect < Dialect::Smb3_0 || is_alike {
                Status::REQUEST_NOT_ACCEPTED
            } else {
                Status::INVALID_PARAMETER
            }
        }
    })
}
