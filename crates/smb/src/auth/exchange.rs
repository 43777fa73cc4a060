//! One authentication: two or three tokens of the client, each answered, and then a session key or
//! a refusal.

use std::sync::Arc;

use super::accounts::Accounts;
use super::ntlm::{self, Before, Direction};
use super::ntlm_messages::{self as messages, Authenticate, flags};
use super::spnego::{self, Said, State};
use crate::crypto::SessionKey;
use crate::crypto::encryption::is_same_secret;
use crate::wire::Malformed;

/// The name of this server as told to clients.
const SERVER_NAME: &str = "HOLDFAST";
const V1_RESPONSE_BYTES: usize = 24;
/// The maximum of a DNS name.
const CLIENT_NAME_CHARACTERS_MAX: usize = 255;

#[derive(Debug)]
pub enum Step {
    /// The client must send another token.
    Continue(Vec<u8>),
    Done(Authenticated),
}

#[derive(Debug)]
pub struct Authenticated {
    pub user: User,
    pub session_key: SessionKey,
    /// The last token for the client.
    pub token: Vec<u8>,
}

/// The user that has logged on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub account: Arc<str>,
    /// The machine name sent by the client, which is not verified.
    pub client_name: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A wrong key, an unknown account, or an anonymous logon.
    LogonFailure,
    /// Not a valid token, or not the expected one.
    Malformed,
}

impl From<Malformed> for Refused {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

#[derive(Debug, Default)]
pub struct Exchange {
    /// Whether the client speaks SPNEGO (as all but a few do) or bare NTLM.
    wrapping: Option<Wrapping>,
    before: Option<Before>,
}

#[derive(Debug)]
enum Wrapping {
    Bare,
    Spnego { mechanism_list: Vec<u8> },
}

impl Exchange {
    /// `challenge` is random; `time` in units of 100 ns since 1601.
    pub fn step(
        &mut self,
        accounts: &Accounts,
        token: &[u8],
        challenge: [u8; 8],
        time: u64,
    ) -> Result<Step, Refused> {
        if token.starts_with(messages::SIGNATURE) {
            return match (&self.wrapping, self.before.take()) {
                (None, None) => {
                    self.wrapping = Some(Wrapping::Bare);
                    Ok(Step::Continue(self.challenge(token, challenge, time)?))
                }
                (Some(Wrapping::Bare), Some(before)) => {
                    let (user, session_key, _) = authenticate(accounts, &before, token)?;
                    Ok(Step::Done(Authenticated { user, session_key, token: Vec::new() }))
                }
                _ => Err(Refused::Malformed),
            };
        }
        match (Said::decode(token)?, &self.wrapping) {
            (Said::Init(init), None) => {
                if !init.ntlm_is_offered {
                    return Err(Refused::LogonFailure);
                }
                let list = init.mechanism_list.to_vec();
                self.wrapping = Some(Wrapping::Spnego { mechanism_list: list });
                let token = init.token.filter(|_| init.ntlm_is_preferred);
                let answered = token.map(|token| self.challenge(token, challenge, time));
                let answered = answered.transpose()?;
                let answer = spnego::answer(State::Incomplete, true, answered.as_deref(), None);
                Ok(Step::Continue(answer))
            }
            (Said::Response(response), Some(Wrapping::Spnego { .. })) => {
                let token = response.token.ok_or(Refused::Malformed)?;
                match self.before.take() {
                    None => {
                        let answered = self.challenge(token, challenge, time)?;
                        let answer = spnego::answer(State::Incomplete, true, Some(&answered), None);
                        Ok(Step::Continue(answer))
                    }
                    Some(before) => {
                        let mic = response.mechanism_list_mic;
                        self.finish(accounts, &before, token, mic).map(Step::Done)
                    }
                }
            }
            _ => Err(Refused::Malformed),
        }
    }

    fn challenge(
        &mut self,
        token: &[u8],
        challenge: [u8; 8],
        time: u64,
    ) -> Result<Vec<u8>, Refused> {
        let asked = messages::negotiate_flags(token)?;
        let message = messages::challenge(asked, &challenge, SERVER_NAME, time);
        self.before = Some(Before {
            negotiate: token.to_vec(),
            challenge_message: message.clone(),
            challenge,
        });
        Ok(message)
    }

    fn finish(
        &self,
        accounts: &Accounts,
        before: &Before,
        token: &[u8],
        mic: Option<&[u8]>,
    ) -> Result<Authenticated, Refused> {
        let (user, session_key, negotiated) = authenticate(accounts, before, token)?;
        let list: &[u8] = match &self.wrapping {
            Some(Wrapping::Spnego { mechanism_list }) => mechanism_list,
            Some(Wrapping::Bare) | None => &[],
        };
        let sign = |direction| ntlm::message_signature(&session_key, direction, negotiated, list);
        let own_mic = match mic {
            Some(mic) if !is_same_secret(&sign(Direction::FromClient), mic) => {
                return Err(Refused::LogonFailure);
            }
            Some(_) => Some(sign(Direction::ToClient)),
            None => None,
        };
        let own_mic = own_mic.as_ref().map(|mic| &mic[..]);
        let token = spnego::answer(State::Completed, false, None, own_mic);
        Ok(Authenticated { user, session_key, token })
    }
}

/// The user, the session key, and the negotiated flags.
fn authenticate(
    accounts: &Accounts,
    before: &Before,
    token: &[u8],
) -> Result<(User, SessionKey, u32), Refused> {
    let authenticate = Authenticate::decode(token)?;
    let is_anonymous = authenticate.flags & flags::ANONYMOUS != 0
        || authenticate.user.is_empty()
        || authenticate.nt_response.is_empty();
    if is_anonymous {
        return Err(Refused::LogonFailure);
    }
    // A response of NTLM version 1 proves nothing.
    if authenticate.nt_response.len() == V1_RESPONSE_BYTES {
        return Err(Refused::LogonFailure);
    }
    let (account, hashes) = accounts.find(&authenticate.user).ok_or(Refused::LogonFailure)?;
    for hash in hashes {
        if let Some(key) = ntlm::check(hash, before, token, &authenticate)? {
            let client_name = shown_name(&authenticate.workstation);
            let user = User { account: Arc::clone(account), client_name };
            return Ok((user, key, authenticate.flags));
        }
    }
    Err(Refused::LogonFailure)
}

/// The name as shown in lists of handles: of limited length, without unprintable characters.
fn shown_name(workstation: &str) -> Arc<str> {
    let signs = workstation.chars().filter(|sign| !sign.is_control());
    signs.take(CLIENT_NAME_CHARACTERS_MAX).collect::<String>().into()
}
