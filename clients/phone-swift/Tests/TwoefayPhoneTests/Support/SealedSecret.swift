import Foundation
import LinuxPhone
import Testing
import TwoefayPhone

/// A secret of codes, sealed by the Python package cryptography as RFC 7516 describes it.
struct SealedSecret {
    let text: String
    let key: SoftwareKey

    private static let program = """
        import base64, hashlib, json, os, sys
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        def encode(data): return base64.urlsafe_b64encode(data).decode().rstrip("=")
        def decode(text): return base64.urlsafe_b64decode(text + "==")
        def field(data): return len(data).to_bytes(4, "big") + data
        x, y = map(decode, sys.argv[1:3])
        phone = ec.EllipticCurvePublicNumbers(int.from_bytes(x, "big"), int.from_bytes(y, "big"), ec.SECP256R1()).public_key()
        sender = ec.generate_private_key(ec.SECP256R1())
        numbers = sender.public_key().public_numbers()
        aud, parties = b"https://login.example.com:8080#shop", b"d1.f1"
        epk = {"kty": "EC", "crv": "P-256", "x": encode(numbers.x.to_bytes(32, "big")), "y": encode(numbers.y.to_bytes(32, "big"))}
        header = encode(json.dumps({"alg": "ECDH-ES", "enc": "A256GCM", "typ": "twoefay-secret+jwe", "aud": aud.decode(),
            "kid": "d1", "factor": "f1", "apu": encode(aud), "apv": encode(parties), "epk": epk}).encode())
        shared = sender.exchange(ec.ECDH(), phone)
        cek = hashlib.sha256((1).to_bytes(4, "big") + shared + field(b"A256GCM") + field(aud) + field(parties)
            + (256).to_bytes(4, "big")).digest()
        nonce = os.urandom(12)
        plain = b'{"v": 1, "secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "algorithm": "sha1", "digits": 6, "period": 30}'
        sealed = AESGCM(cek).encrypt(nonce, plain, header.encode())
        print(".".join([header, "", encode(nonce), encode(sealed[:-16]), encode(sealed[-16:])]), end="")
        """

    init() throws {
        key = try SoftwareKey()
        let point = [key.publicKey.x, key.publicKey.y].map { Base64URL.encode($0) }
        let ended = try RealRelay.run(
            "/usr/bin/python3", ["-c", Self.program] + point, in: FileManager.default.temporaryDirectory)
        try #require(ended.status == 0, "\(ended.errors)")
        text = ended.output
    }
}
