/// Bytes as a key of a dictionary. An array gives its bytes to the hash one by one, which takes ten
/// times as long.
struct HashedBytes: Hashable {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
}
