import Bytes
import Crypto

/// A file of the app, in the program. `dev/embed-pages` writes one for each file of `Assets`.
struct AppFile: Sendable {
    /// The name in its path: `app.js` for `/phone/app.js`.
    let name: String
    let type: String
    let body: [UInt8]
    /// SHA-256 of the body, base64url.
    let digest: String

    init(_ name: String, type: String, text: String) { self.init(name, type: type, Array(text.utf8)) }

    /// - Parameter base64: a body that is no text.
    init(_ name: String, type: String, base64: String) {
        self.init(name, type: type, Base64.decode(base64) ?? [])
    }

    init(_ name: String, type: String, _ body: [UInt8]) {
        self.name = name
        self.type = type
        self.body = body
        digest = Base64URL.encode(SHA256.hash(body))
    }
}
