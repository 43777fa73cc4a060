"""The File service of an account: its properties, keys for user delegation, and who may do what."""

from datetime import timedelta

import pytest
from azure.storage.fileshare import (
    AccessPolicy,
    AccountSasPermissions,
    CorsRule,
    Metrics,
    ResourceTypes,
    RetentionPolicy,
    ShareClient,
    ShareProtocolSettings,
    ShareSasPermissions,
    ShareServiceClient,
    ShareSmbSettings,
    SmbMultichannel,
    generate_account_sas,
    generate_share_sas,
)
from support import refused, unique
from test_access import HOUR, now, unsigned_token

PROPERTIES = "restype=service&comp=properties"
WHOLE = "restype=share"
BACKUP = {"x-ms-file-request-intent": "backup"}


# Properties


@pytest.fixture
def kept(file_raw):
    """The properties are afterwards what they were."""
    before = file_raw.send("GET", "/", PROPERTIES).body
    yield
    file_raw.send("PUT", "/", PROPERTIES, body=b"<StorageServiceProperties><Cors/></StorageServiceProperties>")
    assert file_raw.send("PUT", "/", PROPERTIES, body=before.removeprefix(b"\xef\xbb\xbf")).status == 202


def test_properties_come_back(shares, kept):
    metrics = Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=5))
    rule = CorsRule(["http://a.example"], ["GET", "PUT"], max_age_in_seconds=9, allowed_headers=["x-ms-*"])
    smb = ShareSmbSettings(multichannel=SmbMultichannel(enabled=True))
    shares.set_service_properties(
        hour_metrics=metrics, minute_metrics=metrics, cors=[rule], protocol=ShareProtocolSettings(smb=smb)
    )
    found = shares.get_service_properties()
    for name in ("hour_metrics", "minute_metrics"):
        assert found[name].enabled and found[name].include_apis
        assert (found[name].retention_policy.enabled, found[name].retention_policy.days) == (True, 5)
    (cors,) = found["cors"]
    assert (cors.allowed_origins, cors.max_age_in_seconds) == ("http://a.example", 9)
    assert found["protocol"].smb.multichannel.enabled is True
    shares.set_service_properties(cors=[])
    assert shares.get_service_properties()["hour_metrics"].enabled is True
    assert shares.get_service_properties()["cors"] == []


def test_the_settings_of_smb_come_back(file_raw, kept):
    smb = (
        b"<Multichannel><Enabled>false</Enabled></Multichannel><Versions>SMB3.0;SMB3.1.1;</Versions>"
        b"<AuthenticationMethods>NTLMv2;</AuthenticationMethods>"
        b"<KerberosTicketEncryption>AES-256;</KerberosTicketEncryption>"
        b"<ChannelEncryption>AES-128-GCM;AES-256-GCM;</ChannelEncryption>"
        b"<EncryptionInTransit><Required>true</Required></EncryptionInTransit>"
    )
    nfs = b"<NFS><EncryptionInTransit><Required>false</Required></EncryptionInTransit></NFS>"
    settings = b"<ProtocolSettings><SMB>" + smb + b"</SMB>" + nfs + b"</ProtocolSettings>"
    document = b"<StorageServiceProperties>" + settings + b"</StorageServiceProperties>"
    assert file_raw.send("PUT", "/", PROPERTIES, body=document).status == 202
    assert settings in file_raw.send("GET", "/", PROPERTIES).body


def test_the_settings_of_smb_are_told_even_if_nobody_has_set_them(file_raw, kept):
    told = b"<ProtocolSettings><SMB><Multichannel><Enabled>false</Enabled></Multichannel></SMB></ProtocolSettings>"
    assert told in file_raw.send("GET", "/", PROPERTIES).body


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("<ProtocolSettings><SMB><Versions>SMB1.0;</Versions></SMB></ProtocolSettings>", "InvalidXmlNodeValue"),
        ("<ProtocolSettings><FTP/></ProtocolSettings>", "UnsupportedXmlNode"),
        ("<Logging/>", "UnsupportedXmlNode"),
        (
            "<ShareDeleteRetentionPolicy><Enabled>true</Enabled><Days>366</Days></ShareDeleteRetentionPolicy>",
            "InvalidXmlNodeValue",
        ),
        ("<ShareDeleteRetentionPolicy><Enabled>true</Enabled></ShareDeleteRetentionPolicy>", "MissingRequiredXmlNode"),
    ],
)
def test_properties_that_cannot_be_are_refused(file_raw, content, code):
    document = f"<StorageServiceProperties>{content}</StorageServiceProperties>".encode()
    answer = file_raw.send("PUT", "/", PROPERTIES, body=document)
    assert (answer.status, answer.code) == (400, code)


def test_browsers_are_told_what_they_may(shares, file_raw, kept):
    asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "GET"}
    assert file_raw.send("OPTIONS", "/share", headers=asked, sign=False).code == "CorsPreflightFailure"
    shares.set_service_properties(cors=[CorsRule(["http://a.example"], ["GET"])])
    allowed = file_raw.send("OPTIONS", "/share", headers=asked, sign=False)
    assert (allowed.status, allowed.headers["Access-Control-Allow-Origin"]) == (200, "http://a.example")


# Who may do what


def account_sas(account, permission, types="sco"):
    sas = generate_account_sas(
        account.name,
        account.key,
        ResourceTypes.from_string(types),
        AccountSasPermissions.from_string(permission),
        expiry=now() + HOUR,
    )
    return ShareServiceClient(account.endpoint.geturl().rstrip("/"), credential=sas, retry_total=0)


def test_an_account_sas_gives_what_its_letters_say(file_account, share):
    name = share.share_name

    def client(letters, types="sco"):
        return account_sas(file_account, letters, types).get_share_client(name)

    for letter, call in (
        ("r", lambda share: share.get_share_properties()),
        ("r", lambda share: share.get_share_stats()),
        ("w", lambda share: share.set_share_metadata({})),
        ("w", lambda share: share.set_share_properties(quota=4)),
    ):
        call(client(letter))
        with refused(403, "AuthorizationPermissionMismatch"):
            call(client("rwdlc".replace(letter, "")))
        with refused(403, "AuthorizationResourceTypeMismatch"):
            call(client(letter, "so"))
    list(account_sas(file_account, "l").list_shares(name))
    with refused(403, "AuthorizationPermissionMismatch"):
        list(account_sas(file_account, "rwdc").list_shares(name))
    client("c").create_snapshot()
    # Policies and leases are for the owner of the account.
    for call in (client("rwdlc").get_share_access_policy, lambda: client("rwdlc").acquire_lease(lease_duration=-1)):
        with refused(403, "AuthorizationFailure"):
            call()
    client("d").delete_share(delete_snapshots="include")


def share_sas(account, share, permission=None, **arguments):
    arguments = {"expiry": now() + HOUR} | arguments
    sas = generate_share_sas(account.name, share.share_name, account.key, permission=permission, **arguments)
    return ShareClient.from_share_url(share.url.split("?")[0], credential=sas, retry_total=0)


def test_a_service_sas_reaches_what_is_in_a_share_and_not_the_share(file_account, share):
    client = share_sas(file_account, share, ShareSasPermissions.from_string("rcwdl"))
    key = client.create_permission_for_share("O:SYG:BAD:(A;;FA;;;WD)")
    assert client.get_permission_for_share(key) == "O:SYG:BAD:(A;;FA;;;WD)"
    for call in (client.get_share_properties, client.delete_share):
        with refused(403, "AuthorizationFailure"):
            call()


def test_a_stored_policy_gives_and_takes(file_account, share):
    letters = ShareSasPermissions.from_string("rwd")
    share.set_share_access_policy({"policy": AccessPolicy(letters, now() + HOUR, now() - HOUR)})
    client = share_sas(file_account, share, policy_id="policy", expiry=None)
    key = client.create_permission_for_share("O:SYG:BAD:")
    assert client.get_permission_for_share(key) == "O:SYG:BAD:"
    share.set_share_access_policy({})
    with refused(403, "AuthenticationFailed"):
        client.get_permission_for_share(key)


def bearer(**headers):
    return {"Authorization": f"Bearer {unsigned_token()}", **headers}


def test_a_token_says_that_it_means_a_backup(file_raw, share, unsigned_tokens):
    path = f"/{share.share_name}"
    with_intent = file_raw.send("GET", path, WHOLE, bearer(**BACKUP), sign=False)
    assert with_intent.status == 200
    without = file_raw.send("GET", path, WHOLE, bearer(), sign=False)
    assert (without.status, without.code) == (400, "MissingRequiredHeader")
    early = file_raw.send("GET", path, WHOLE, bearer(**BACKUP), sign=False, version="2024-08-04")
    assert early.status == 403


def test_a_key_for_user_delegation_is_given_to_tokens(file_raw, unsigned_tokens):
    expiry = (now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = f"<KeyInfo><Expiry>{expiry}</Expiry></KeyInfo>".encode()
    query = "restype=service&comp=userdelegationkey"
    answer = file_raw.send("POST", "/", query, bearer(), body=body, sign=False)
    assert answer.status == 200, answer.body
    assert answer.xml().findtext("SignedService") == "f"
    assert answer.xml().findtext("Value")
    assert file_raw.send("POST", "/", query, body=body).status == 403


def test_nobody_gets_in_without_credentials(file_raw, share):
    for path, query in ((f"/{share.share_name}", WHOLE), ("/", "comp=list")):
        answer = file_raw.send("GET", path, query, sign=False)
        assert (answer.status, answer.code) == (401, "NoAuthenticationInformation")


def test_the_secondary_is_read_only(file_raw, share):
    prefix = f"{file_raw.account.endpoint.path.rstrip('/')}-secondary"
    if not file_raw.account.is_path_style:
        pytest.skip("the secondary has another host")
    for method, expected in (("GET", 200), ("PUT", 403)):
        headers = {"x-ms-date": now().strftime("%a, %d %b %Y %H:%M:%S GMT"), "x-ms-version": file_raw.version}
        target = f"{prefix}/{share.share_name}"
        query = WHOLE if method == "GET" else f"{WHOLE}&comp=metadata"
        if method == "PUT":
            headers["Content-Length"] = "0"
        headers["Authorization"] = file_raw.authorization(method, target, query, headers)
        assert file_raw.exchange(method, f"{target}?{query}", headers, None).status == expected


def test_a_share_is_empty_at_first(share, file_raw):
    assert share.get_share_stats() == 0
    path = f"/{share.share_name}"
    newest = file_raw.send("GET", path, f"{WHOLE}&comp=stats")
    assert newest.xml().findtext("ShareUsageBytes") == "0"
    old = file_raw.send("GET", path, f"{WHOLE}&comp=stats", version="2018-03-28")
    assert old.xml().findtext("ShareUsage") == "0"
    with refused(404, "ShareNotFound"):
        share.delete_share()
        share.get_share_stats()


def test_what_is_asked_of_another_service_is_not_known(file_raw):
    answer = file_raw.send("GET", f"/{unique('x')}", "restype=container")
    assert answer.status == 400
