import Bytes
import CSV

/// Reads seeds from a table: a line of column names, then one token on each line.
public enum CSVTokenReader {
    public static let mostBytes = 64 << 20
    private static let columns = [
        "username", "kind", "secret", "encoding", "algorithm", "digits", "period", "counter", "serial",
    ]

    public static func read(_ bytes: [UInt8]) throws(SeedFaults) -> SeedFile {
        var harvest = SeedCollector()
        do throws(SeedFault) {
            guard bytes.count <= mostBytes else {
                throw SeedFault(line: 1, "larger than \(mostBytes >> 20) MiB; split it into several files")
            }
            var reader = CSVReader(bytes)
            let header = try Header(try reader.nextOfTokens(), known: columns, needed: ["kind", "secret"])
            while let record = try reader.nextOfTokens() {
                do throws(SeedFault) {
                    harvest.add(try seed(try header.row(record)))
                } catch {
                    harvest.add(error)
                }
            }
        } catch {
            throw SeedFaults([error])
        }
        return try harvest.file(empty: "the file has column names but no token")
    }

    /// Reads the owners of tokens: the columns `serial` and `username`. Returns user names by
    /// serial numbers.
    public static func readMap(_ bytes: [UInt8]) throws(SeedFaults) -> [String: String] {
        var users: [String: String] = [:]
        do throws(SeedFault) {
            var reader = CSVReader(bytes)
            let header = try Header(
                try reader.nextOfTokens(), known: ["serial", "username"], needed: ["serial", "username"])
            while let record = try reader.nextOfTokens() {
                let row = try header.row(record)
                guard let serial = row["serial"], let username = row["username"] else {
                    throw row.fault("both serial and username must be given")
                }
                guard users.updateValue(username, forKey: serial) == nil else {
                    throw row.fault("the serial \(serial) appears twice")
                }
            }
        } catch {
            throw SeedFaults([error])
        }
        return users
    }

    private static func seed(_ row: Row) throws(SeedFault) -> Seed {
        let kind: Seed.Kind
        switch row["kind"]?.lowercased() {
        case "totp":
            guard row["counter"] == nil else { throw row.fault("counter: must be empty for totp") }
            let period = try row.number("period") ?? 30
            guard let seconds = Int(exactly: period), SeedBounds.period.contains(seconds) else {
                throw row.fault("period: must be from 1 to \(SeedBounds.period.upperBound) seconds")
            }
            kind = .totp(period: seconds)
        case "hotp":
            guard row["period"] == nil else { throw row.fault("period: must be empty for hotp") }
            let counter = try row.number("counter") ?? 0
            guard SeedBounds.counter.contains(counter) else {
                throw row.fault("counter: must be at most \(SeedBounds.counter.upperBound)")
            }
            kind = .hotp(counter: counter)
        default: throw row.fault("kind: must be totp or hotp")
        }
        let digits = try row.number("digits") ?? 6
        guard let digits = Int(exactly: digits), SeedBounds.digits.contains(digits) else {
            throw row.fault("digits: must be from 6 to 8")
        }
        let name = row["algorithm"]?.lowercased().filter { $0 != "-" } ?? "sha1"
        guard let hash = Seed.Hash(rawValue: name.hasPrefix("hmac") ? String(name.dropFirst(4)) : name) else {
            throw row.fault("algorithm: must be sha1, sha256 or sha512")
        }
        guard row["username"] != nil || row["serial"] != nil else {
            throw row.fault("username or serial must be given")
        }
        return Seed(
            secret: try secret(row), kind: kind, hash: hash, digits: digits, username: row["username"],
            serial: row["serial"], line: row.line)
    }

    /// Returns the secret. The encoding must be stated, because many secrets are valid in both.
    private static func secret(_ row: Row) throws(SeedFault) -> Secret {
        guard var text = row["secret"] else { throw row.fault("secret: is missing") }
        var encoding = row["encoding"]?.lowercased()
        for prefix in ["hex", "base32"] where text.lowercased().hasPrefix(prefix + ":") {
            guard encoding ?? prefix == prefix else {
                throw row.fault("secret: begins with \(prefix): but the column encoding has another value")
            }
            encoding = prefix
            text = String(text.dropFirst(prefix.count + 1))
        }
        let letters = text.filter { $0 != " " && $0 != "-" }
        let bytes: [UInt8]?
        switch encoding {
        case "hex": bytes = Hex.decode(letters.lowercased())
        case "base32": bytes = Base32.decode(letters)
        case nil: throw row.fault("secret: write hex: or base32: before it, or add a column encoding")
        default: throw row.fault("encoding: must be hex or base32")
        }
        guard let bytes, SeedBounds.secretBytes.contains(bytes.count) else {
            throw row.fault("secret: must be \(encoding ?? "") of 1 to \(SeedBounds.secretBytes.upperBound) bytes")
        }
        return Secret(bytes)
    }

    /// The position of each column.
    private struct Header {
        private let places: [String: Int]
        private let count: Int

        init(_ record: CSVReader.Record?, known: [String], needed: [String]) throws(SeedFault) {
            guard let record else { throw SeedFault(line: 1, "the file is empty; line 1 must name the columns") }
            var places: [String: Int] = [:]
            for (place, field) in record.fields.enumerated() {
                let name = Row.trimmed(field).lowercased()
                guard known.contains(name) else {
                    let all = known.joined(separator: ", ")
                    let meant = Spelling.nearest(to: name, among: known).map { "; did you mean \($0)?" } ?? ""
                    throw SeedFault(
                        line: record.line,
                        "\(Self.called(name, place)) is not a column; the columns are \(all)\(meant)")
                }
                guard places.updateValue(place, forKey: name) == nil else {
                    throw SeedFault(line: record.line, "the column \(name) appears twice")
                }
            }
            for name in needed where places[name] == nil {
                throw SeedFault(line: record.line, "the column \(name) is missing")
            }
            self.places = places
            count = record.fields.count
        }

        /// Names a column in a message. If the line of names is missing, the first token is here,
        /// and its secret must not be shown.
        private static func called(_ name: String, _ place: Int) -> String {
            let isWord =
                (1...12).contains(name.utf8.count) && name.utf8.allSatisfy { (0x61...0x7a).contains($0 | 0x20) }
            return isWord ? name : "field \(place + 1) of this line"
        }

        func row(_ record: CSVReader.Record) throws(SeedFault) -> Row {
            guard record.fields.count == count else {
                throw SeedFault(
                    line: record.line, "has \(record.fields.count) fields, but the first line names \(count) columns")
            }
            return Row(line: record.line, values: places.mapValues { Row.trimmed(record.fields[$0]) })
        }
    }

    private struct Row {
        let line: Int
        let values: [String: String]

        /// The value of a column; nil if it is empty or missing.
        subscript(column: String) -> String? {
            guard let value = values[column], !value.isEmpty else { return nil }
            return value
        }

        func fault(_ message: String) -> SeedFault { SeedFault(line: line, message) }

        func number(_ column: String) throws(SeedFault) -> Int64? {
            guard let text = self[column] else { return nil }
            guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int64(text) else {
                throw fault("\(column): must be a whole number")
            }
            return number
        }

        static func trimmed(_ field: String) -> String {
            let bytes = Array(field.utf8)
            guard let first = bytes.firstIndex(where: { $0 != 0x20 && $0 != 0x09 }),
                let last = bytes.lastIndex(where: { $0 != 0x20 && $0 != 0x09 })
            else { return "" }
            return String(decoding: bytes[first...last], as: UTF8.self)
        }
    }
}

extension CSVReader {
    /// Returns the next record, with a fault as that of a token file.
    fileprivate mutating func nextOfTokens() throws(SeedFault) -> Record? {
        do throws(CSVFault) {
            return try next()
        } catch {
            throw SeedFault(line: error.line, error.message)
        }
    }
}
