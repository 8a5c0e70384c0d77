import Foundation
import LinuxPhone
import Testing
import TwoefayPhone

/// A certificate with its key, made by the program openssl.
struct TestCertificate {
    enum Kind: String, CaseIterable, Sendable {
        case p256, p384, rsa
    }

    let kind: Kind
    private(set) var der: [UInt8] = []
    private let directory: URL

    /// - Parameter name: the common name.
    init(_ kind: Kind, name: String = "localhost") throws {
        self.kind = kind
        directory = FileManager.default.temporaryDirectory.appending(path: "phone-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let key =
            switch kind {
            case .p256: ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            case .p384: ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"]
            case .rsa: ["-newkey", "rsa:2048"]
            }
        try openssl(
            [
                "req", "-x509", "-noenc", "-keyout", "key.pem", "-out", "certificate.der", "-outform", "DER", "-days",
                "2",
                "-subj", "/CN=\(name)",
            ] + key)
        der = Array(try Data(contentsOf: directory.appending(path: "certificate.der")))
    }

    private func openssl(_ arguments: [String]) throws {
        let ended = try RealRelay.run("/usr/bin/openssl", arguments, in: directory)
        try #require(ended.status == 0, "\(arguments): \(ended.errors)")
    }

    /// The SubjectPublicKeyInfo, as openssl writes it.
    func keyInfo() throws -> [UInt8] {
        try openssl(["pkey", "-in", "key.pem", "-pubout", "-outform", "DER", "-out", "key.der"])
        return Array(try Data(contentsOf: directory.appending(path: "key.der")))
    }

    /// Signs claims as the relay does.
    func statement(
        _ type: String, _ claims: JSONObject, algorithm: String? = nil, naming other: [UInt8]? = nil
    ) throws -> String {
        let name = ["ES256", "ES384", "RS256"][kind == .p256 ? 0 : kind == .p384 ? 1 : 2]
        let header: JSONObject = [
            "alg": .string(algorithm ?? name), "typ": .string(type),
            "x5t#S256": .string(Base64URL.encode(OpenSSLCryptography().sha256(other ?? der))),
        ]
        let input = "\(Base64URL.encode(header.bytes)).\(Base64URL.encode(claims.bytes))"
        try Data(input.utf8).write(to: directory.appending(path: "input"))
        try openssl(["dgst", kind == .p384 ? "-sha384" : "-sha256", "-sign", "key.pem", "-out", "signature", "input"])
        var signature = Array(try Data(contentsOf: directory.appending(path: "signature")))
        if kind != .rsa {
            signature = try #require(ECDSASignature.raw(der: signature, width: kind == .p384 ? 48 : 32))
        }
        return "\(input).\(Base64URL.encode(signature))"
    }
}
