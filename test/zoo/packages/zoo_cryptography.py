"""cryptography: symmetric and signatures."""

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def work():
    key = Fernet(Fernet.generate_key())
    signer = Ed25519PrivateKey.generate()
    signer.public_key().verify(signer.sign(b"text"), b"text")
    return key.decrypt(key.encrypt(b"text"))
