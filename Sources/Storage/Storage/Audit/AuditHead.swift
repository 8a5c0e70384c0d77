import Bytes
import Crypto
import JSON
import Relay

/// The newest link of a writer, as relays write it to a place outside of the database.
public struct AuditHead: Sendable, Equatable {
    public let writer: [UInt8]
    public let sequence: Int64
    public let at: String
    let hash: [UInt8]
    let signature: [UInt8]
    let publicKey: [UInt8]

    /// Whether the writer with this key has signed the link.
    func isGenuine(_ key: P256PublicKey) -> Bool {
        key.x963 == publicKey
            && key.verify(signature: signature, over: AuditLink.signed(writer, sequence, at, hash))
    }

    var ownKey: P256PublicKey? { try? P256PublicKey(x963: publicKey) }

    /// The line of this head in a file with heads, without its end.
    public var line: String {
        let json = JSONValue.object([
            "writer": .string(Hex.encode(writer)), "sequence": .integer(sequence), "at": .string(at),
            "hash": .string(Hex.encode(hash)), "signature": .string(Hex.encode(signature)),
            "public_key": .string(Hex.encode(publicKey)),
        ])
        return JSONWriter.text(json)
    }

    init(
        writer: [UInt8], sequence: Int64, at: String, hash: [UInt8], signature: [UInt8], publicKey: [UInt8]
    ) {
        self.writer = writer
        self.sequence = sequence
        self.at = at
        self.hash = hash
        self.signature = signature
        self.publicKey = publicKey
    }

    init(_ link: AuditLink, publicKey: [UInt8]) {
        self.init(
            writer: link.writer, sequence: link.sequence, at: link.at, hash: link.hash, signature: link.signature,
            publicKey: publicKey)
    }

    /// Reads a line; nil if it is not one.
    public init?(line: String) {
        guard let members = try? JSONReader.read(Array(line.utf8)).object,
            let sequence = members["sequence"]?.integer, let at = members["at"]?.string,
            let writer = Self.bytes(members["writer"], 16), let hash = Self.bytes(members["hash"], 32),
            let signature = Self.bytes(members["signature"], 64), let key = Self.bytes(members["public_key"], 65)
        else { return nil }
        self.init(
            writer: writer, sequence: sequence, at: at, hash: hash, signature: signature, publicKey: key)
    }

    private static func bytes(_ value: JSONValue?, _ count: Int) -> [UInt8]? {
        guard let text = value?.string, let bytes = Hex.decode(text), bytes.count == count else { return nil }
        return bytes
    }
}
