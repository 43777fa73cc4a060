//! The part of the File service's properties that is about SMB and NFS.

use holdfast_domain::account::{Choices, ProtocolSettings};

use crate::version::Version;
use crate::xml::Writer;
use crate::xml::document::{DocumentRefusal, Element, Fields, value};

const VERSIONS: Choice = Choice("Versions", &["SMB2.1", "SMB3.0", "SMB3.1.1"]);
const AUTHENTICATION: Choice = Choice("AuthenticationMethods", &["NTLMv2", "Kerberos"]);
const KERBEROS: Choice = Choice("KerberosTicketEncryption", &["RC4-HMAC", "AES-256"]);
const CHANNEL: Choice = Choice("ChannelEncryption", &["AES-128-CCM", "AES-128-GCM", "AES-256-GCM"]);

/// An element and the names that it can list, each followed by a semicolon.
struct Choice(&'static str, &'static [&'static str]);

impl Choice {
    fn parse(&self, fields: Fields<'_>) -> Result<Option<Choices>, DocumentRefusal> {
        let Self(element, names) = *self;
        let Some(text) = fields.text(element) else { return Ok(None) };
        let mut bits = 0;
        for name in text.split(';').map(str::trim).filter(|name| !name.is_empty()) {
            let known = names.iter().position(|known| known.eq_ignore_ascii_case(name));
            bits |= 1 << known.ok_or_else(|| value(element, text))?;
        }
        Ok(Some(Choices(bits)))
    }

    fn write(&self, xml: &mut Writer, choices: Option<Choices>) {
        let Self(element, names) = *self;
        if let Some(Choices(bits)) = choices {
            let chosen = names.iter().enumerate().filter(|(at, _)| bits & 1 << at != 0);
            let text: String = chosen.flat_map(|(_, name)| [name, ";"]).collect();
            xml.element(element, &text);
        }
    }
}

pub fn parse(element: &Element) -> Result<ProtocolSettings, DocumentRefusal> {
    let fields = element.fields(&["SMB", "NFS"])?;
    let mut settings = ProtocolSettings::default();
    if let Some(smb) = fields.get("SMB") {
        let Choice(versions, _) = VERSIONS;
        let Choice(authentication, _) = AUTHENTICATION;
        let (Choice(kerberos, _), Choice(channel, _)) = (KERBEROS, CHANNEL);
        let lists = [versions, authentication, kerberos, channel];
        let smb = smb.fields(&[&["Multichannel", "EncryptionInTransit"][..], &lists].concat())?;
        settings.smb_multichannel = parse_switch(smb, "Multichannel", "Enabled")?;
        settings.smb_encryption_required = parse_switch(smb, "EncryptionInTransit", "Required")?;
        settings.smb_versions = VERSIONS.parse(smb)?;
        settings.smb_authentication_methods = AUTHENTICATION.parse(smb)?;
        settings.smb_kerberos_ticket_encryption = KERBEROS.parse(smb)?;
        settings.smb_channel_encryption = CHANNEL.parse(smb)?;
    }
    if let Some(nfs) = fields.get("NFS") {
        let nfs = nfs.fields(&["EncryptionInTransit"])?;
        settings.nfs_encryption_required = parse_switch(nfs, "EncryptionInTransit", "Required")?;
    }
    Ok(settings)
}

fn parse_switch(
    fields: Fields<'_>,
    of: &str,
    name: &'static str,
) -> Result<Option<bool>, DocumentRefusal> {
    match fields.get(of) {
        Some(element) => element.fields(&[name])?.boolean(name),
        None => Ok(None),
    }
}

/// Always written from 2020-06-12 on: some clients (az) need them.
pub fn write(xml: &mut Writer, protocols: &ProtocolSettings, version: Version) {
    if *protocols == ProtocolSettings::default() && version < Version::V2020_06_12 {
        return;
    }
    let multichannel = protocols.smb_multichannel.unwrap_or(false);
    xml.open("ProtocolSettings");
    xml.open("SMB");
    write_switch(xml, "Multichannel", "Enabled", Some(multichannel));
    VERSIONS.write(xml, protocols.smb_versions);
    AUTHENTICATION.write(xml, protocols.smb_authentication_methods);
    KERBEROS.write(xml, protocols.smb_kerberos_ticket_encryption);
    CHANNEL.write(xml, protocols.smb_channel_encryption);
    write_switch(xml, "EncryptionInTransit", "Required", protocols.smb_encryption_required);
    xml.close("SMB");
    if protocols.nfs_encryption_required.is_some() {
        xml.open("NFS");
        write_switch(xml, "EncryptionInTransit", "Required", protocols.nfs_encryption_required);
        xml.close("NFS");
    }
    xml.close("ProtocolSettings");
}

fn write_switch(xml: &mut Writer, of: &str, name: &str, value: Option<bool>) {
    if let Some(value) = value {
        xml.open(of);
        xml.element(name, if value { "true" } else { "false" });
        xml.close(of);
    }
}
