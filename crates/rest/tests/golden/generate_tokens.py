"""Signs tokens with PyJWT and keys made for the purpose.

    pip install pyjwt cryptography
    python generate_tokens.py > tokens.json
"""

import base64
import json
import sys

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

NOW = 1717243200  # Sat, 01 Jun 2024 12:00:00 GMT
TENANT = "bbbbbbbb-0000-4000-8000-000000000002"
CLAIMS = {
    "iss": f"https://sts.windows.net/{TENANT}/",
    "aud": "https://storage.azure.com/",
    "nbf": NOW - 600,
    "iat": NOW - 600,
    "exp": NOW + 3600,
    "oid": "aaaaaaaa-0000-4000-8000-000000000001",
    "tid": TENANT,
    "upn": "user@example.com",
    "roles": ["Reader"],
}

RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_RSA = rsa.generate_private_key(65537, 2048)
OTHER_CURVE = ec.generate_private_key(ec.SECP384R1())


def public(algorithm, key, kid, **more):
    return json.loads(algorithm.to_jwk(key.public_key())) | {"kid": kid} | more


def token(key, algorithm, kid="rsa", **changes):
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}
    return jwt.encode(claims, key, algorithm, headers={"kid": kid} if kid else {})


rsa_modulus = base64.urlsafe_b64decode(public(RSAAlgorithm, RSA_KEY, "rsa")["n"] + "==")
accepted = {
    "RS256": token(RSA_KEY, "RS256"),
    "PS256": token(RSA_KEY, "PS256"),
    "ES256": token(EC_KEY, "ES256", "ec"),
    "without kid": token(EC_KEY, "ES256", None),
    "audience without slash": token(RSA_KEY, "RS256", aud="https://storage.azure.com"),
    "audience is the account": token(RSA_KEY, "RS256", aud="https://goldenaccount.blob.core.windows.net/"),
    "several audiences": token(RSA_KEY, "RS256", aud=["other", "https://storage.azure.com/"]),
    "expired within the skew": token(RSA_KEY, "RS256", exp=NOW - 299),
    "not yet valid within the skew": token(RSA_KEY, "RS256", nbf=NOW + 299),
    "without start": token(RSA_KEY, "RS256", nbf=None),
    "subject only": token(RSA_KEY, "RS256", oid=None, sub="aaaaaaaa-0000-4000-8000-000000000001"),
}
refused = {
    "unsigned": token("", "none"),
    "signed with the public key as a secret": token(rsa_modulus, "HS256"),
    "signed by another key": token(OTHER_RSA, "RS256"),
    "signed by another key of the set than it names": token(RSA_KEY, "RS256", "ec"),
    "unknown key": token(RSA_KEY, "RS256", "other"),
    "algorithm that is not offered": token(RSA_KEY, "RS512"),
    "curve that is not offered": token(OTHER_CURVE, "ES384", "p384"),
    "key that is not for signatures": token(OTHER_RSA, "RS256", "encryption"),
    "other issuer": token(RSA_KEY, "RS256", iss=f"https://sts.windows.net/{TENANT}/x"),
    "no issuer": token(RSA_KEY, "RS256", iss=None),
    "other audience": token(RSA_KEY, "RS256", aud="https://graph.microsoft.com/"),
    "other account": token(RSA_KEY, "RS256", aud="https://otheraccount.blob.core.windows.net"),
    "no audience": token(RSA_KEY, "RS256", aud=None),
    "expired": token(RSA_KEY, "RS256", exp=NOW - 301),
    "no end": token(RSA_KEY, "RS256", exp=None),
    "not yet valid": token(RSA_KEY, "RS256", nbf=NOW + 301),
}
keys = [
    public(RSAAlgorithm, RSA_KEY, "rsa", use="sig"),
    public(ECAlgorithm, EC_KEY, "ec"),
    public(ECAlgorithm, OTHER_CURVE, "p384"),
    public(RSAAlgorithm, OTHER_RSA, "encryption", use="enc"),
]
json.dump(
    {
        "issuer": CLAIMS["iss"],
        "key_set": {"keys": keys},
        "accepted": accepted,
        "refused": refused,
    },
    sys.stdout,
    indent=1,
)
print()
