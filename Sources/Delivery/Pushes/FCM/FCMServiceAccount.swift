import Bytes
import Crypto
import HTTP
import JSON

/// The service account with which the relay authenticates to Google: a JSON file from the console.
public struct FCMServiceAccount: Sendable {
    public let email: String
    public let keyID: String?
    public let key: CertificateKey
    /// The project whose app gets the pushes.
    public let project: String
    /// The URL that issues access tokens, as the file has it.
    public let tokenURL: String
    public let tokenEndpoint: PushEndpoint
    let tokenPath: String
    /// The SHA-256 of the file, by which an unchanged account is recognized.
    private let digest: [UInt8]

    /// The reason why a file is not accepted. It contains nothing of the file.
    public struct Fault: Error, Sendable, Equatable, CustomStringConvertible {
        public let description: String
        init(_ description: String) { self.description = description }
    }

    /// Reads the file. Unknown members are ignored, since Google adds its own.
    public init(json: Secret) throws(Fault) {
        let whole = json.withBytes { bytes in (try? JSONReader.read(Array(bytes)))?.object }
        guard let whole else { throw Fault("is not a JSON object, as Google's console writes for a service account") }
        func text(_ name: String) throws(Fault) -> String {
            guard let text = whole[name]?.string, !text.isEmpty, text.utf8.count <= 8192 else {
                throw Fault("has no text \(name)")
            }
            return text
        }
        email = try text("client_email")
        keyID = whole["private_key_id"]?.string
        project = try text("project_id")
        // The project becomes part of a path.
        guard project.utf8.count <= 64, project.utf8.allSatisfy(Self.isOfProject) else {
            throw Fault("has a project_id that is none: only lower-case letters, digits, - . and : are allowed")
        }
        let pem = try text("private_key")
        guard let key = try? CertificateKey(pem: Secret(Array(pem.utf8))), key.algorithm == .rs256 else {
            throw Fault("has a private_key that is not an RSA key of at least 2048 bits in PEM")
        }
        self.key = key
        tokenURL = try text("token_uri")
        let rest = tokenURL.dropFirst("https://".count)
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        guard let address = WebAddress("https://\(rest[..<slash])"), tokenURL.hasPrefix("https://"),
            rest[slash...].utf8.allSatisfy({ (0x21...0x7e).contains($0) && $0 != UInt8(ascii: "#") })
        else { throw Fault("has a token_uri that is not an https: URL") }
        tokenEndpoint = PushEndpoint(host: address.host, port: address.port ?? 443)
        tokenPath = slash == rest.endIndex ? "/" : String(rest[slash...])
        digest = json.withBytes { SHA256.hash(Array($0)) }
    }

    private static func isOfProject(_ byte: UInt8) -> Bool {
        (0x61...0x7a).contains(byte) || (0x30...0x3a).contains(byte) || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: ".")
    }

    func isSame(as other: FCMServiceAccount) -> Bool { digest == other.digest }
}
