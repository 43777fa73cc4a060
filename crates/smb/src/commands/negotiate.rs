//! NEGOTIATE: which dialect, which signatures and which cipher, [MS-SMB2] 3.3.5.3 and 3.3.5.4.

use super::Result;
use crate::answer::Answer;
use crate::auth;
use crate::call::Call;
use crate::connection::Connection;
use crate::crypto::{Cipher, SigningAlgorithm};
use crate::dialect::{Dialect, Negotiated};
use crate::frontend::random;
use crate::info::time;
use crate::settings::Signing;
use crate::status::Status;
use crate::wire::negotiate::{
    Chosen, Contexts, Request, Response, SHA_512, SIGNING_ENABLED, SIGNING_REQUIRED, capabilities,
};

/// The dialect that means "SMB 2, negotiate again".
const ANY_SMB2: u16 = 0x02FF;
/// Fastest first.
const CIPHERS: [Cipher; 4] =
    [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::Aes128Ccm, Cipher::Aes256Ccm];
const SIGNING: [SigningAlgorithm; 3] =
    [SigningAlgorithm::AesGmac, SigningAlgorithm::AesCmac, SigningAlgorithm::HmacSha256];

pub fn handle(call: &mut Call) -> Result {
    let connection = &call.connection;
    if connection.negotiated().is_some() {
        call.disconnects = true;
        return Err(Status::INVALID_PARAMETER);
    }
    let request = Request::decode(&call.message)?;
    let dialect = Dialect::best_of(&request.dialects).ok_or(Status::NOT_SUPPORTED)?;
    let mut negotiated = decide(&request, dialect, security_mode(connection))?;
    if connection.frontend.settings.persistent_handles && dialect.has_persistent_handles() {
        negotiated.capabilities |= capabilities::PERSISTENT_HANDLES;
    }
    let chosen = (dialect == Dialect::Smb3_1_1).then(|| Chosen {
        salt: random(),
        // 0 means that the client offered ciphers, but none is supported.
        cipher: request
            .contexts
            .ciphers
            .as_ref()
            .map(|_| negotiated.cipher.map_or(0, |it| it as u16)),
        signing: request.contexts.signing.as_ref().map(|_| negotiated.signing.code()),
    });
    let mut response = response(connection, dialect as u16, dialect);
    response.capabilities = negotiated.capabilities;
    response.chosen = chosen;
    if dialect == Dialect::Smb3_1_1 {
        connection.preauth.lock().add(&call.message);
        call.preauth = Some(connection.preauth.clone());
    }
    connection.negotiate(negotiated);
    Ok(Answer::success(|out| response.encode(out)))
}

/// The features that client and server have in common.
fn decide(request: &Request, dialect: Dialect, security_mode: u16) -> Result<Negotiated> {
    let Contexts { preauth_hashes, ciphers, signing } = &request.contexts;
    let mut capabilities = dialect.capabilities();
    let (signing, cipher) = match dialect {
        Dialect::Smb2_0_2 | Dialect::Smb2_1 => (SigningAlgorithm::HmacSha256, None),
        Dialect::Smb3_0 | Dialect::Smb3_0_2 => {
            let can_encrypt = request.capabilities & capabilities::ENCRYPTION != 0;
            if !can_encrypt {
                capabilities &= !capabilities::ENCRYPTION;
            }
            (SigningAlgorithm::AesCmac, can_encrypt.then_some(Cipher::Aes128Ccm))
        }
        Dialect::Smb3_1_1 => {
            let knows_hash = preauth_hashes.as_ref().is_some_and(|all| all.contains(&SHA_512));
            if !knows_hash {
                return Err(Status::INVALID_PARAMETER);
            }
            let offers =
                |all: &Option<Vec<u16>>, code| all.as_ref().is_some_and(|all| all.contains(&code));
            let signing = SIGNING.into_iter().find(|it| offers(signing, it.code()));
            let cipher = CIPHERS.into_iter().find(|it| offers(ciphers, *it as u16));
            (signing.unwrap_or(SigningAlgorithm::AesCmac), cipher)
        }
    };
    Ok(Negotiated {
        dialect,
        client_guid: request.client_guid,
        client_capabilities: request.capabilities,
        client_security_mode: request.security_mode,
        offered_dialects: request.dialects.clone(),
        signing,
        cipher,
        capabilities,
        security_mode,
    })
}

fn security_mode(connection: &Connection) -> u16 {
    match connection.frontend.settings.signing {
        Signing::Required => SIGNING_ENABLED | SIGNING_REQUIRED,
        Signing::WhenAsked => SIGNING_ENABLED,
    }
}

fn response(connection: &Connection, code: u16, dialect: Dialect) -> Response {
    let bytes_max = dialect.transfer_bytes_max();
    Response {
        security_mode: security_mode(connection),
        dialect: code,
        server_guid: connection.frontend.guid,
        capabilities: dialect.capabilities(),
        transact_bytes_max: bytes_max,
        read_bytes_max: bytes_max,
        write_bytes_max: bytes_max,
        system_time: time::to_wire(connection.frontend.domain.now()),
        security_token: auth::offer(),
        chosen: None,
    }
}

/// The answer to the NEGOTIATE of SMB 1, if the client offers SMB 2, too.
pub fn answer_smb1(connection: &Connection, message: &[u8]) -> Option<Answer> {
    const NEGOTIATE: u8 = 0x72;
    const HEADER_BYTES: usize = 32;
    if connection.negotiated().is_some() || message.get(4) != Some(&NEGOTIATE) {
        return None;
    }
    // After a count of parameters (none) and of bytes come names, each between a byte 2 and a byte
    // 0.
    let mut names = message.get(HEADER_BYTES + 3..)?.split(|byte| *byte == 0);
    let offers_any = names.clone().any(|name| name == b"\x02SMB 2.???");
    if offers_any {
        let mut response = response(connection, ANY_SMB2, Dialect::Smb2_1);
        response.capabilities = 0;
        return Some(Answer::success(|out| response.encode(out)));
    }
    if !names.any(|name| name == b"\x02SMB 2.002") {
        return None;
    }
    let dialect = Dialect::Smb2_0_2;
    connection.negotiate(Negotiated {
        dialect,
        client_guid: [0; 16],
        client_capabilities: 0,
        client_security_mode: SIGNING_ENABLED,
        offered_dialects: vec![dialect as u16],
        signing: SigningAlgorithm::HmacSha256,
        cipher: None,
        capabilities: dialect.capabilities(),
        security_mode: security_mode(connection),
    });
    let response = response(connection, dialect as u16, dialect);
    Some(Answer::success(|out| response.encode(out)))
}
