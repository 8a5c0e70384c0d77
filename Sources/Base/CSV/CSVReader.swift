/// Reads records as spreadsheets write them (RFC 4180). A quoted field may contain separators,
/// quotes and line ends. Tested in `CSVTests.swift` of TokenFiles.
public struct CSVReader {
    public struct Record: Sendable {
        public let line: Int
        public let fields: [String]
    }

    private let bytes: [UInt8]
    private let separator: UInt8
    private var at = 0
    private var line = 1

    /// Detects the separator: a comma, or a semicolon if the first line has no comma, as
    /// spreadsheets of some countries write it.
    public init(_ bytes: [UInt8]) {
        // Spreadsheets begin a file with a byte order mark.
        self.bytes = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? Array(bytes.dropFirst(3)) : bytes
        let first = self.bytes.prefix { $0 != 0x0a }
        separator =
            !first.contains(UInt8(ascii: ",")) && first.contains(UInt8(ascii: ";"))
            ? UInt8(ascii: ";") : UInt8(ascii: ",")
    }

    private static let mostFields = 64
    private static let mostField = 4096

    /// Returns the next record that is not empty; nil at the end.
    public mutating func next() throws(CSVFault) -> Record? {
        while at < bytes.count {
            let record = try record()
            if record.fields != [""] { return record }
        }
        return nil
    }

    private mutating func record() throws(CSVFault) -> Record {
        let start = line
        var fields: [String] = []
        while true {
            fields.append(try field())
            guard fields.count <= Self.mostFields else {
                throw CSVFault(line: start, "more than \(Self.mostFields) fields")
            }
            guard at < bytes.count, bytes[at] == separator else { break }
            at += 1
        }
        try endLine()
        return Record(line: start, fields: fields)
    }

    private mutating func endLine() throws(CSVFault) {
        if at < bytes.count, bytes[at] == 0x0d { at += 1 }
        guard at < bytes.count else { return }
        guard bytes[at] == 0x0a else {
            throw CSVFault(line: line, "text follows the closing quote of a field; double the quotes inside a field")
        }
        at += 1
        line += 1
    }

    private mutating func field() throws(CSVFault) -> String {
        var value: [UInt8] = []
        let start = line
        if at < bytes.count, bytes[at] == UInt8(ascii: "\"") {
            at += 1
            while true {
                guard at < bytes.count else { throw CSVFault(line: start, "a quote opens here and is never closed") }
                let byte = bytes[at]
                at += 1
                if byte == UInt8(ascii: "\"") {
                    guard at < bytes.count, bytes[at] == byte else { break }
                    at += 1
                }
                if byte == 0x0a { line += 1 }
                value.append(byte)
                try require(value, from: start)
            }
        } else {
            while at < bytes.count, bytes[at] != separator, bytes[at] != 0x0a, bytes[at] != 0x0d {
                value.append(bytes[at])
                at += 1
                try require(value, from: start)
            }
        }
        guard let text = String(validating: value, as: UTF8.self) else {
            throw CSVFault(line: start, "not UTF-8; save the file in this encoding")
        }
        return text
    }

    private func require(_ value: [UInt8], from line: Int) throws(CSVFault) {
        guard value.count <= Self.mostField else {
            throw CSVFault(line: line, "a field is longer than \(Self.mostField) bytes; a quote may be missing")
        }
    }
}

/// A fault in the form of a file, with its line. It never contains a value of the file.
public struct CSVFault: Error, Sendable, Equatable {
    public let line: Int
    public let message: String

    public init(line: Int, _ message: String) {
        self.line = line
        self.message = message
    }
}
