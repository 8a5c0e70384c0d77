import Bytes
import EventLoop
import HTTP
import Hardening
import Log
import Storage

/// A value that the settings hold as one text.
public protocol SettingsValue: Sendable, Equatable {
    init(settingsText text: String) throws(SettingsFault)
    var settingsText: String { get }
}

/// The reason why a text is not a valid value. The caller adds the position.
public struct SettingsFault: Error, Sendable, Equatable {
    public let message: String

    public init(_ message: String) { self.message = message }
}

/// The name of a file as written: relative to the settings, absolute, or `credential:NAME`.
public struct FileName: SettingsValue, Hashable {
    public let written: String

    public init(_ written: String) { self.written = written }

    public init(settingsText text: String) throws(SettingsFault) {
        guard !text.isEmpty, !text.utf8.contains(0) else { throw SettingsFault("must name a file") }
        try Credentials.check(text)
        written = text
    }

    public var settingsText: String { written }
}

/// The name of a Unix socket as written, such as `unix:/run/twoefay-keys/socket`.
public struct SocketName: SettingsValue, Hashable {
    /// The path, relative to the settings or absolute.
    public let path: String
    private static let scheme = "unix:"

    public init(settingsText text: String) throws(SettingsFault) {
        path = String(text.dropFirst(Self.scheme.count))
        guard text.hasPrefix(Self.scheme), !path.isEmpty, !path.utf8.contains(0) else {
            throw SettingsFault("must be unix:PATH, such as unix:/run/twoefay-keys/socket")
        }
        guard path.utf8.count <= 107 else { throw SettingsFault("must have a path of at most 107 bytes") }
    }

    public var settingsText: String { Self.scheme + path }
}

/// An address to listen on or to connect to: `0.0.0.0:8080`, `[::1]:8080`,
/// `relay.example.com:8080`.
public struct HostPort: SettingsValue, Hashable {
    public let host: String
    public let port: UInt16

    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    public init(settingsText text: String) throws(SettingsFault) {
        guard let (host, port) = WebAddress.split(text), let port else {
            throw SettingsFault("must be HOST:PORT, such as 0.0.0.0:8080 or [::1]:8080")
        }
        self.init(host: host, port: port)
    }

    public var settingsText: String { WebAddress(secure: true, host: host, port: port).authority }
}

/// A loopback address to listen on, which only this machine can reach: `127.0.0.1:9464`,
/// `[::1]:9464`.
public struct LocalAddress: SettingsValue, Hashable {
    public let place: HostPort

    public init(settingsText text: String) throws(SettingsFault) {
        place = try HostPort(settingsText: text)
        guard SocketAddress(host: place.host, port: place.port)?.isLoopback == true else {
            throw SettingsFault(
                "must be a loopback address, such as 127.0.0.1:9464 or [::1]:9464, because the metrics need "
                    + "no authentication")
        }
    }

    public var settingsText: String { place.settingsText }
}

extension WebAddress: SettingsValue {
    public init(settingsText text: String) throws(SettingsFault) {
        guard let address = WebAddress(text) else {
            throw SettingsFault("must be https://HOST or https://HOST:PORT, with no path and no / at the end")
        }
        self = address
    }

    public var settingsText: String { text }
}

/// The address of the store as written. A relative path in it starts in the directory of the
/// settings.
public struct StorageText: SettingsValue {
    public let written: String

    /// An embedded database.
    public init(path: String) { written = "sqlite:\(path)" }

    public init(settingsText text: String) throws(SettingsFault) {
        do {
            _ = try StorageURL(text)
        } catch {
            // The name of the key comes before the message, and some begin with it.
            let message = error.description
            throw SettingsFault(message.hasPrefix("storage ") ? String(message.dropFirst(8)) : message)
        }
        written = text
    }

    public var settingsText: String { written }
}

extension Settings {
    /// Returns the address of the store. It does not throw for a text from the settings file,
    /// because the reader has checked it.
    public func storageURL() throws(StorageURL.Malformed) -> StorageURL {
        let url = try StorageURL(storage.written, relativeTo: directory)
        guard case .mariadb(var server) = url else { return url }
        server.passwordFile = server.passwordFile.map { Credentials.path($0) ?? $0 }
        server.authority = server.authority.map { Credentials.path($0) ?? $0 }
        return .mariadb(server)
    }
}

extension String: SettingsValue {
    public init(settingsText text: String) throws(SettingsFault) {
        let plain = !text.isEmpty && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        guard plain else { throw SettingsFault("must be a text, not empty and without control characters") }
        self = text
    }

    public var settingsText: String { self }
}

extension SettingsValue where Self: RawRepresentable & CaseIterable, RawValue == String {
    public init(settingsText text: String) throws(SettingsFault) {
        guard let word = Self(rawValue: text) else {
            let near = Spelling.nearest(to: text, among: Self.allCases.map(\.rawValue))
            let words = Self.allCases.map(\.rawValue).joined(separator: ", ")
            throw SettingsFault("must be one of \(words)" + (near.map { "; did you mean \($0)?" } ?? ""))
        }
        self = word
    }

    public var settingsText: String { rawValue }
}

extension LogFormat: SettingsValue {}
extension LogLevel: SettingsValue {}
extension HardeningLevel: SettingsValue {}
extension SealedData: SettingsValue {}
