import CNghttp2

/// The fields of a message as nghttp2 wants them: pointers into one run of bytes, used again for the next message.
struct FieldList {
    private struct Entry {
        let name: Int
        let value: Int
        let end: Int
        let indexed: Bool
    }

    private var bytes: [UInt8] = []
    private var entries: [Entry] = []
    private var vectors: [nghttp2_nv] = []

    mutating func clear() {
        bytes.removeAll(keepingCapacity: bytes.capacity <= 65_536)
        entries.removeAll(keepingCapacity: true)
    }

    mutating func add(_ name: String, _ value: String, indexed: Bool = true) {
        let start = bytes.count
        bytes.append(contentsOf: name.utf8)
        let middle = bytes.count
        bytes.append(contentsOf: value.utf8)
        entries.append(Entry(name: start, value: middle, end: bytes.count, indexed: indexed))
    }

    mutating func add(_ name: String, status: Int) {
        let start = bytes.count
        bytes.append(contentsOf: name.utf8)
        let middle = bytes.count
        bytes.append(UInt8(ascii: "0") + UInt8(status / 100 % 10))
        bytes.append(UInt8(ascii: "0") + UInt8(status / 10 % 10))
        bytes.append(UInt8(ascii: "0") + UInt8(status % 10))
        entries.append(Entry(name: start, value: middle, end: bytes.count, indexed: true))
    }

    /// The pointers are good for the length of `body`; nghttp2 copies what it keeps.
    mutating func withEntries<Value>(_ body: (UnsafePointer<nghttp2_nv>?, Int) -> Value) -> Value {
        vectors.removeAll(keepingCapacity: true)
        return bytes.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return body(nil, 0) }
            for entry in entries {
                let flag = entry.indexed ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX
                vectors.append(
                    nghttp2_nv(
                        name: base + entry.name, value: base + entry.value, namelen: entry.value - entry.name,
                        valuelen: entry.end - entry.value, flags: UInt8(flag.rawValue)))
            }
            return vectors.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
        }
    }
}
