import Bytes
import Crypto
import World

/// The entries of a revocation list, read by the schema of RFC 5280 §5.1.
struct ReadRevocationList: Equatable {
    /// The serial numbers in hexadecimal, and whether each is on hold.
    private(set) var entries: [String: Bool] = [:]

    init(_ der: [UInt8]) throws {
        var outer = DERReader(der)
        var list = try outer.open(.sequence)
        var signed = try list.open(.sequence)
        _ = try signed.integer()
        // The algorithm and the issuer.
        for _ in 0..<2 { _ = try signed.content(.sequence) }
        // This update and the next one.
        for _ in 0..<2 { _ = try signed.next() }
        let (tag, content) = try signed.next()
        guard tag == .sequence else { return }
        var revoked = DERReader(Array(content))
        while !revoked.isAtEnd {
            var entry = try revoked.open(.sequence)
            let serial = try entry.content(.integer).drop { $0 == 0 }
            _ = try entry.next()
            entries[Hex.encode(Array(serial))] = !entry.isAtEnd
        }
    }

    /// The entries of all these certificates.
    static func entries(_ certificates: [Certificate], onHold: Bool) -> [String: Bool] {
        Dictionary(uniqueKeysWithValues: certificates.map { ($0.serial, onHold) })
    }
}
