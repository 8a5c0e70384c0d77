"""An authority of one run, for a browser that trusts a certificate only with its issuer."""

import datetime
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def named(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def builder(subject, issuer, key):
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder().subject_name(named(subject)).issuer_name(named(issuer)).public_key(key)
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30)))


class Authority:
    """Its certificate as DER, and in the file `path`; `server` is a file with a certificate for localhost and its key."""

    def __init__(self, directory):
        own, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        root = builder("authority of phone tests", "authority of phone tests", own.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), True).sign(own, hashes.SHA256())
        leaf = (
            builder("localhost", "authority of phone tests", key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
            .sign(own, hashes.SHA256()))
        self.der = root.public_bytes(serialization.Encoding.DER)
        self.path, self.server = (os.path.join(directory, name) for name in ("authority.pem", "server.pem"))
        with open(self.path, "wb") as file:
            file.write(root.public_bytes(serialization.Encoding.PEM))
        with open(self.server, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
            file.write(leaf.public_bytes(serialization.Encoding.PEM))
