/// The address of the store: `sqlite:relay.db`, `sqlite:/var/lib/twoefay/twoefay.db`,
/// `sqlite::memory:`,
/// `mariadb://user:password@host1:3306,host2/twoefay?password_file=…&socket=…&ssl_ca=…`.
public enum StorageURL: Sendable, Equatable {
    case memory
    case sqlite(path: String)
    case mariadb(Server)

    public struct Server: Sendable, Equatable {
        public struct Host: Sendable, Equatable {
            public var name: String
            public var port: UInt16
        }

        /// The names of the hosts in logs and metrics, or the path of the socket.
        public var places: [String] { socket.map { [$0] } ?? hosts.map(\.description) }

        /// The hosts, in the order in which the relay tries them.
        public var hosts: [Host]
        public var user: String
        public var database: String
        public var password: String?
        /// The path of a file that has the password, so that the settings do not need it.
        public var passwordFile: String?
        /// The path of a Unix socket that replaces the hosts.
        public var socket: String?
        /// The path of the authority that must have issued the server's certificate. If set,
        /// connections without TLS are refused.
        public var authority: String?
    }

    /// Whether only one relay can use the store.
    public var isEmbedded: Bool {
        switch self {
        case .memory, .sqlite: true
        case .mariadb: false
        }
    }

    /// An error message for the person who wrote the URL. It does not repeat the URL, which may
    /// have a password.
    public struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
        public let description: String
    }

    /// Parses a URL. If `directory` is given, relative paths are relative to it.
    public init(_ text: String, relativeTo directory: String? = nil) throws(Malformed) {
        if text.hasPrefix("sqlite:") {
            let path = String(text.dropFirst(7))
            guard !path.isEmpty else { throw Malformed(description: "sqlite: needs a path, as in sqlite:twoefay.db") }
            guard !path.hasPrefix("//") else {
                throw Malformed(description: "sqlite: takes a path, as in sqlite:/var/lib/twoefay/twoefay.db, not //")
            }
            self = path == ":memory:" ? .memory : .sqlite(path: Self.absolute(path, in: directory))
        } else if text.hasPrefix("mariadb://") {
            self = .mariadb(try Self.server(text.dropFirst(10), in: directory))
        } else {
            throw Malformed(description: "storage must begin with sqlite: or mariadb://")
        }
    }

    private static func absolute(_ path: String, in directory: String?) -> String {
        // The settings find a credential elsewhere.
        guard let directory, !directory.isEmpty, !path.hasPrefix("/"), !path.hasPrefix("credential:") else {
            return path
        }
        return directory + "/" + path
    }

    private static func server(_ text: Substring, in directory: String?) throws(Malformed) -> Server {
        let (address, query) = text.split(at: "?")
        let (authority, database) = address.split(at: "/")
        let user: Substring
        let list: Substring
        if let at = authority.lastIndex(of: "@") {
            (user, list) = (authority[..<at], authority[authority.index(after: at)...])
        } else {
            throw Malformed(description: "mariadb:// needs a user, as in mariadb://twoefay@localhost/twoefay")
        }
        let (name, password) = user.split(at: ":")
        guard !name.isEmpty else { throw Malformed(description: "the user before @ is empty") }
        guard let database, !database.isEmpty, !database.contains("/") else {
            throw Malformed(description: "mariadb:// needs one database, as in mariadb://twoefay@localhost/twoefay")
        }
        var server = Server(
            hosts: [], user: try decoded(name, "user"), database: try decoded(database, "database"),
            password: try password.map { text throws(Malformed) in try decoded(text, "password") })
        for host in list.split(separator: ",", omittingEmptySubsequences: false) {
            server.hosts.append(try Self.host(host))
        }
        for pair in (query ?? "").split(separator: "&") {
            let (key, value) = pair.split(at: "=")
            guard let value, !value.isEmpty else { throw Malformed(description: "\(key) needs a value") }
            let path = absolute(try decoded(value, String(key)), in: directory)
            switch key {
            case "socket": server.socket = path
            case "password_file": server.passwordFile = path
            case "ssl_ca": server.authority = path
            default:
                throw Malformed(description: "\(key) is unknown; there are socket, password_file and ssl_ca")
            }
        }
        guard server.password == nil || server.passwordFile == nil else {
            throw Malformed(description: "a password and password_file are given: only one can be meant")
        }
        return server
    }

    private static func host(_ text: Substring) throws(Malformed) -> Server.Host {
        var name = text
        var port: Substring?
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            name = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            guard rest.isEmpty || rest.hasPrefix(":") else { throw Malformed(description: "\(text) is not a host") }
            port = rest.isEmpty ? nil : rest.dropFirst()
        } else {
            (name, port) = text.split(at: ":")
            guard port?.contains(":") != true else {
                throw Malformed(description: "\(text): an IPv6 address stands in brackets, as in [::1]:3306")
            }
        }
        guard !name.isEmpty else { throw Malformed(description: "a host is empty") }
        guard let port else { return Server.Host(name: String(name), port: 3306) }
        guard let number = UInt16(port), number > 0 else {
            throw Malformed(description: "\(port) is not a port")
        }
        return Server.Host(name: String(name), port: number)
    }

    private static func decoded(_ text: Substring, _ part: String) throws(Malformed) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            guard digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit), let value = UInt8(digits, radix: 16) else {
                throw Malformed(description: "a % in the \(part) is not followed by two hexadecimal digits")
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        guard let decoded = String(validating: bytes, as: UTF8.self), !decoded.utf8.contains(0) else {
            throw Malformed(description: "the \(part) is not UTF-8 text")
        }
        return decoded
    }
}

extension StorageURL: CustomStringConvertible {
    /// The URL without the password, for messages and logs.
    public var description: String {
        switch self {
        case .memory: return "sqlite::memory:"
        case .sqlite(let path): return "sqlite:\(path)"
        case .mariadb(let server):
            return "mariadb://\(server.user)@\(server.places.joined(separator: ","))/\(server.database)"
        }
    }
}

extension StorageURL.Server.Host: CustomStringConvertible {
    public var description: String { "\(name):\(port)" }
}

extension Substring {
    /// Returns the text before and after the first `separator`; the second part is nil if there is
    /// no separator.
    fileprivate func split(at separator: Character) -> (Substring, Substring?) {
        guard let at = firstIndex(of: separator) else { return (self, nil) }
        return (self[..<at], self[index(after: at)...])
    }
}
