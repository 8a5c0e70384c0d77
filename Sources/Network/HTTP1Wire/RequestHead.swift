import HTTP

/// The head of a request over HTTP/1.1. The fields of the connection itself are not among `fields`,
/// so a request is the same as over HTTP/2.
public struct RequestHead: Sendable, Equatable {
    public internal(set) var method = ""
    /// The path as received (percent-encoded), without the query.
    public internal(set) var path = ""
    public internal(set) var query: String?
    public internal(set) var fields = Fields()
    public internal(set) var host: String?
    public internal(set) var contentLength: Int?
    public internal(set) var isChunked = false
    /// Whether the client waits for `100 Continue` before it sends the body.
    public internal(set) var expectsContinue = false
    /// Whether the client may send another request on this connection.
    public internal(set) var staysOpen = true
    /// The size of the request line and the fields, with 32 more for each, as HTTP/2 counts fields.
    public internal(set) var size = 0
    var count = 0
    var isVersion10 = false

    /// Whether a body follows.
    var hasBody: Bool { isChunked || contentLength ?? 0 > 0 }

    // MARK: The request line

    mutating func readRequestLine(_ line: UnsafeRawBufferPointer) -> RequestFault? {
        guard let first = line.firstIndex(of: Byte.space), let last = line.lastIndex(of: Byte.space), first < last
        else { return .requestLine }
        let method = line[..<first]
        guard !method.isEmpty, method.allSatisfy(Byte.isToken) else { return .requestLine }
        let target = line[(first + 1)..<last]
        guard !target.contains(Byte.space) else { return .requestLine }
        if let fault = readVersion(line[(last + 1)...]) { return fault }
        self.method = String(decoding: method, as: UTF8.self)
        // A reader in between may open a tunnel, whatever the target is.
        guard self.method != "CONNECT" else { return .target }
        return readTarget(target)
    }

    private mutating func readVersion(_ version: Slice<UnsafeRawBufferPointer>) -> RequestFault? {
        let bytes = Array(version)
        guard bytes.count == 8, bytes.starts(with: "HTTP/".utf8), Byte.isDigit(bytes[5]), bytes[6] == Byte.dot,
            Byte.isDigit(bytes[7])
        else { return .requestLine }
        guard bytes[5] == Byte.zero + 1, bytes[7] <= Byte.zero + 1 else { return .version }
        isVersion10 = bytes[7] == Byte.zero
        if isVersion10 { staysOpen = false }
        return nil
    }

    private mutating func readTarget(_ target: Slice<UnsafeRawBufferPointer>) -> RequestFault? {
        guard target.first == Byte.slash, target.allSatisfy(Byte.isOfTarget) else { return .target }
        guard let mark = target.firstIndex(of: Byte.questionMark) else {
            path = String(decoding: target, as: UTF8.self)
            return nil
        }
        path = String(decoding: target[..<mark], as: UTF8.self)
        query = String(decoding: target[(mark + 1)...], as: UTF8.self)
        return nil
    }

    // MARK: Fields

    mutating func readField(_ line: UnsafeRawBufferPointer) -> RequestFault? {
        if let first = line.first, Byte.isBlank(first) { return .foldedField }
        guard let colon = line.firstIndex(of: Byte.colon), colon > 0, line[..<colon].allSatisfy(Byte.isToken) else {
            return .fieldName
        }
        var value = UnsafeRawBufferPointer(rebasing: line[(colon + 1)...])
        while let first = value.first, Byte.isBlank(first) { value = UnsafeRawBufferPointer(rebasing: value[1...]) }
        while let last = value.last, Byte.isBlank(last) { value = UnsafeRawBufferPointer(rebasing: value.dropLast()) }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: colon) { name in
            for at in 0..<colon { name.initializeElement(at: at, to: Byte.lowered(line[at])) }
            return read(UnsafeBufferPointer(name), value.assumingMemoryBound(to: UInt8.self))
        }
    }

    private mutating func read(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> RequestFault? {
        func isNamed(_ text: StaticString) -> Bool {
            name.count == text.utf8CodeUnitCount
                && name.elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: name.count))
        }
        switch name.count {
        case 2 where isNamed("te"), 7 where isNamed("trailer"), 10 where isNamed("keep-alive"),
            16 where isNamed("proxy-connection"):
            return nil
        case 4 where isNamed("host"):
            guard host == nil else { return .host }
            host = String(decoding: value, as: UTF8.self)
            return nil
        case 6 where isNamed("expect"):
            guard Byte.isSame(value, "100-continue") else { return .expectation }
            expectsContinue = true
            return nil
        case 7 where isNamed("upgrade"): return .upgrade
        case 10 where isNamed("connection"):
            readConnection(value)
            return nil
        case 14 where isNamed("content-length"):
            guard contentLength == nil, let length = Byte.number(value) else { return .contentLength }
            contentLength = length
        case 17 where isNamed("transfer-encoding"):
            guard !isChunked, Byte.isSame(value, "chunked") else { return .transferEncoding }
            isChunked = true
            return nil
        default: break
        }
        fields.add(name, value)
        return nil
    }

    private mutating func readConnection(_ value: UnsafeBufferPointer<UInt8>) {
        for part in value.split(separator: Byte.comma) {
            let option = part.drop(while: Byte.isBlank).prefix { !Byte.isBlank($0) }
            if Byte.isSame(UnsafeBufferPointer(rebasing: option), "close") { staysOpen = false }
        }
    }

    /// Checks the head as a whole, when all fields have come.
    mutating func complete() -> RequestFault? {
        guard let host, WebAddress.split(host) != nil else { return .host }
        if isChunked, contentLength != nil || isVersion10 { return .transferEncoding }
        // A client of HTTP/1.0 does not know 100 Continue.
        if isVersion10 { expectsContinue = false }
        return nil
    }
}
