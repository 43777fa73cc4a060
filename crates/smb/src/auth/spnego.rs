//! The negotiation around NTLM, [MS-SPNG] and RFC 4178: which mechanism, and its tokens.

use super::der::{self, context};
use crate::wire::Malformed;

const SPNEGO: [u8; 6] = [0x2B, 6, 1, 5, 5, 2];
const NTLM: [u8; 10] = [0x2B, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];
const HINT: &[u8] = b"not_defined_in_RFC4178@please_ignore";
/// More than any client knows.
const MECHANISMS_MAX: usize = 16;

/// A message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    Init(Init<'a>),
    Response(Response<'a>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init<'a> {
    /// The list of mechanisms as it was sent, which its checksum covers.
    pub mechanism_list: &'a [u8],
    pub ntlm_is_offered: bool,
    /// Whether `token` is for the client's preferred mechanism.
    pub ntlm_is_preferred: bool,
    pub token: Option<&'a [u8]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    pub token: Option<&'a [u8]>,
    pub mechanism_list_mic: Option<&'a [u8]>,
}

impl<'a> Said<'a> {
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        match bytes.first() {
            Some(&der::APPLICATION) => {
                let mut inner = der::whole(bytes, der::APPLICATION)?;
                if der::take(&mut inner, der::OBJECT_IDENTIFIER)? != SPNEGO {
                    return Err(Malformed);
                }
                Init::decode(inner).map(Self::Init)
            }
            Some(_) | None => Response::decode(bytes).map(Self::Response),
        }
    }
}

impl<'a> Init<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = der::whole(der::whole(bytes, context(0))?, der::SEQUENCE)?;
        let mechanism_list = der::take(&mut fields, context(0))?;
        let mut mechanisms = der::whole(mechanism_list, der::SEQUENCE)?;
        let (mut ntlm_is_offered, mut ntlm_is_preferred) = (false, false);
        for index in 0..=MECHANISMS_MAX {
            if mechanisms.is_empty() {
                break;
            }
            if index == MECHANISMS_MAX {
                return Err(Malformed);
            }
            let is_ntlm = der::take(&mut mechanisms, der::OBJECT_IDENTIFIER)? == NTLM;
            ntlm_is_offered |= is_ntlm;
            ntlm_is_preferred |= is_ntlm && index == 0;
        }
        // Flags that clients must not send.
        der::take_if(&mut fields, context(1))?;
        let token = octets(&mut fields, 2)?;
        Ok(Self { mechanism_list, ntlm_is_offered, ntlm_is_preferred, token })
    }
}

impl<'a> Response<'a> {
    fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = der::whole(der::whole(bytes, context(1))?, der::SEQUENCE)?;
        der::take_if(&mut fields, context(0))?;
        der::take_if(&mut fields, context(1))?;
        let token = octets(&mut fields, 2)?;
        let mechanism_list_mic = octets(&mut fields, 3)?;
        Ok(Self { token, mechanism_list_mic })
    }
}

fn octets<'a>(fields: &mut &'a [u8], number: u8) -> Result<Option<&'a [u8]>, Malformed> {
    let field = der::take_if(fields, context(number))?;
    field.map(|field| der::whole(field, der::OCTET_STRING)).transpose()
}

/// The first token of the server, in its answer to NEGOTIATE: it offers NTLM.
pub fn offer() -> Vec<u8> {
    let mechanism = der::value(der::OBJECT_IDENTIFIER, &NTLM);
    let mechanisms = der::value(context(0), &der::value(der::SEQUENCE, &mechanism));
    let hint = der::value(context(0), &der::value(der::GENERAL_STRING, HINT));
    let hints = der::value(context(3), &der::value(der::SEQUENCE, &hint));
    let fields = der::value(der::SEQUENCE, &[mechanisms, hints].concat());
    let inner = [der::value(der::OBJECT_IDENTIFIER, &SPNEGO), der::value(context(0), &fields)];
    der::value(der::APPLICATION, &inner.concat())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Completed = 0,
    Incomplete = 1,
}

/// An answer of the server.
pub fn answer(
    state: State,
    names_mechanism: bool,
    token: Option<&[u8]>,
    mechanism_list_mic: Option<&[u8]>,
) -> Vec<u8> {
    let mut fields = der::value(context(0), &der::value(der::ENUMERATED, &[state as u8]));
    if names_mechanism {
        let mechanism = der::value(der::OBJECT_IDENTIFIER, &NTLM);
        fields.extend(der::value(context(1), &mechanism));
    }
    for (number, octets) in [(2, token), (3, mechanism_list_mic)] {
        if let Some(octets) = octets {
            fields.extend(der::value(context(number), &der::value(der::OCTET_STRING, octets)));
        }
    }
    der::value(context(1), &der::value(der::SEQUENCE, &fields))
}
