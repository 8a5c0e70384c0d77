import Bytes
import Crypto
import JSON
import Testing

/// The keys of certificates from elsewhere, made and verified by the `openssl` command.
@Suite struct CertificateKeyTests {
    enum Kind: String, CaseIterable, CustomTestStringConvertible {
        case p256, p384, rsa
        var testDescription: String { rawValue }

        var option: String {
            switch self {
            case .p256: "ec -pkeyopt ec_paramgen_curve:P-256"
            case .p384: "ec -pkeyopt ec_paramgen_curve:P-384"
            case .rsa: "rsa:2048"
            }
        }
        var algorithm: JWS.Algorithm {
            switch self {
            case .p256: .es256
            case .p384: .es384
            case .rsa: .rs256
            }
        }
    }

    @Test func generatedRSAKeyVerifiesOnlyItsOwnStatements() throws {
        let (one, other) = (
            try CertificateKey(pem: CertificateKey.generateRSA()), try CertificateKey(pem: CertificateKey.generateRSA())
        )
        #expect(one.algorithm == .rs256)
        let signed = try JWS.sign(header: ["typ": "JWT"], payload: Array("text".utf8), key: one)
        #expect(one.verified(signed)?.payload == Array("text".utf8))
        #expect(other.verified(signed) == nil)
        #expect(one.verified(String(signed.dropLast())) == nil)
        #expect(one.verified("") == nil)
    }

    /// Returns the key and the certificate that openssl has made.
    private func made(_ shell: Shell, _ option: String) throws -> (key: Secret, certificate: Certificate) {
        let made = try shell.openssl(
            "req -x509 -newkey \(option) -nodes -subj /CN=relay -days 1 -keyout key.pem -out cert.pem",
            making: "key.pem", "cert.pem")
        try #require(made.status == 0, "\(made.output)")
        return (Secret(try shell.read("key.pem")), try Certificate(pem: try shell.read("cert.pem")))
    }

    /// The form of a signature that openssl reads.
    private func der(_ signature: [UInt8], _ kind: Kind) -> [UInt8] {
        guard kind != .rsa else { return signature }
        func integer(_ half: ArraySlice<UInt8>) -> [UInt8] {
            var number = Array(half.drop { $0 == 0 })
            if number.first.map({ $0 >= 0x80 }) != false { number.insert(0, at: 0) }
            return [0x02, UInt8(number.count)] + number
        }
        let half = signature.count / 2
        let numbers = integer(signature[..<half]) + integer(signature[half...])
        return [0x30, UInt8(numbers.count)] + numbers
    }

    @Test(arguments: Kind.allCases) func openSSLVerifiesTheSignature(kind: Kind) throws {
        let shell = try Shell()
        let key = try CertificateKey(pem: try made(shell, kind.option).key)
        #expect(key.algorithm == kind.algorithm)
        let message = Array("the relay's time".utf8)
        try shell.write("message", message)
        try shell.write("signature", der(try key.sign(message), kind))
        try shell.openssl("x509 -in cert.pem -pubkey -noout -out public.pem", making: "public.pem")
        let digest = kind == .p384 ? "-sha384" : "-sha256"
        let verified = try shell.openssl("dgst \(digest) -verify public.pem -signature signature message")
        #expect(verified.status == 0, "\(verified.output)")
    }

    @Test(arguments: Kind.allCases) func certificateVerifiesOnlyItsOwnStatements(kind: Kind) throws {
        let (key, certificate) = try made(try Shell(), kind.option)
        let statement = try JWS.sign(
            header: ["typ": "x"], payload: Array("{}".utf8), key: try CertificateKey(pem: key))
        let object = try #require(certificate.verified(statement))
        #expect(object.type == "x" && object.payload == Array("{}".utf8))
        #expect(object.header["alg"]?.string == kind.algorithm.rawValue)
        let other = try made(try Shell(), kind.option).certificate
        #expect(other.verified(statement) == nil)
        var changed = statement
        changed.insert("A", at: changed.startIndex)
        #expect(certificate.verified(changed) == nil)
        #expect(certificate.verified(String(statement.dropLast(8))) == nil)
        // The key decides the algorithm: a secret that everybody knows signs nothing.
        let forged = JWS.sign(header: ["typ": "x"], payload: Array("{}".utf8), secret: Secret(certificate.der))
        #expect(certificate.verified(forged) == nil)
    }

    @Test(arguments: ["ed25519", "rsa:1024", "ec -pkeyopt ec_paramgen_curve:secp521r1"])
    func otherKeysAreRefused(option: String) throws {
        let (key, certificate) = try made(try Shell(), option)
        #expect(throws: CryptoFailure.self) { try CertificateKey(pem: key) }
        #expect(certificate.verified("e30.e30.e30") == nil)
    }
}
