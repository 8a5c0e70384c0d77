import Bytes
import Crypto
import KeyService
import Relay
import Storage
import World

/// The master keys of an installation, under which secrets in the store are sealed.
///
/// Purpose: keys can be rotated while relays run. Secrets that leave the installation are random
/// and are never derived from a master key. An old key therefore opens only what was sealed under
/// it.
///
/// The file holds one key on a line, the newest first: 64 hexadecimal digits. The first key seals,
/// unless its line ends with the word `next`; every key opens what it has sealed. A `next` key does
/// not seal yet, because every relay must know a key before any relay seals under it. `#` begins a
/// comment; the comment above a key may say when it was made.
///
/// Invariant: ids of operations and nonces of proofs are derived from the last line, the oldest
/// key. They must not change while requests are open, so a new key changes nothing about them.
///
/// Failure modes: if a relay seals under a key that another relay does not know, the other one
/// cannot open the secret. Without the file, everything that is sealed is lost.
/// `MasterKeyTests.swift` and `RekeyTests.swift` test it.
public struct MasterKey: Sendable {
    public struct Key: Sendable {
        public let secret: Secret
        /// Whether the key is known but does not seal yet.
        public var isNext: Bool
        /// The time at which the key was made; nil if the file does not say it.
        public let madeAt: Timestamp?
        /// The id in the column `sealed_by` of the rows that this key has sealed.
        public var id: String { MasterKey.id(of: secret) }
    }

    /// The reason why a file holds no valid master keys. It contains nothing of the file.
    public struct Fault: Error, Sendable, Equatable {
        public let message: String

        init(_ message: String, line: Int? = nil) {
            self.message = (line.map { "line \($0) " } ?? "") + message
        }
    }

    private enum Line {
        case text(String)
        case key(Key)
    }

    private static let mostKeys = 16
    private var lines: [Line]

    /// The keys, the newest first.
    public var keys: [Key] {
        lines.compactMap { if case .key(let key) = $0 { key } else { nil } }
    }

    /// The key that seals.
    public let current: Key
    /// The oldest key, from which ids of operations and nonces are derived.
    public let secret: Secret

    public static func generate(_ randomness: any Randomness, at now: Timestamp) -> MasterKey {
        let key = Key(secret: Secret(randomness.bytes(32)).locked(), isNext: false, madeAt: now)
        return MasterKey(lines: [.key(key)], current: key, oldest: key)
    }

    private init(lines: [Line], current: Key, oldest: Key) {
        self.lines = lines
        self.current = current
        secret = oldest.secret
    }

    init(file: [UInt8]) throws(Fault) { try self.init(file: Secret(file)) }

    init(file: Secret) throws(Fault) {
        try self.init(lines: file.withBytes { file throws(Fault) in try Self.lines(of: file) })
    }

    /// Reads the keys as bytes, because a string of them would stay in memory.
    private static func lines(of file: UnsafeRawBufferPointer) throws(Fault) -> [Line] {
        guard (try? UTF8Span(validating: file.bindMemory(to: UInt8.self).span)) != nil else {
            throw Fault("must be text")
        }
        var lines: [Line] = []
        for (index, line) in file.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            let words = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: "\r") }
            guard let first = words.first, first.first != UInt8(ascii: "#") else {
                lines.append(.text(String(decoding: line, as: UTF8.self)))
                continue
            }
            let isNext = words.count == 2 && words[1].elementsEqual("next".utf8)
            guard words.count == 1 || isNext, let key = key(of: first) else {
                throw Fault("must be 64 hexadecimal digits, and may end with the word next", line: index + 1)
            }
            var madeAt: Timestamp?
            if case .text(let comment) = lines.last, let time = Self.timeOfMaking(in: comment) {
                lines.removeLast()
                madeAt = time
            }
            lines.append(.key(Key(secret: key, isNext: isNext, madeAt: madeAt)))
        }
        // Removes the empty text after the last line end.
        if case .text("") = lines.last { lines.removeLast() }
        return lines
    }

    private static let made = "# made "

    private static func timeOfMaking(in comment: String) -> Timestamp? {
        guard comment.hasPrefix(made) else { return nil }
        return Timestamp(rfc3339: String(comment.dropFirst(made.count)))
    }

    /// Returns 32 bytes from 64 lower-case hexadecimal digits; nil for any other text.
    private static func key(of digits: Slice<UnsafeRawBufferPointer>) -> Secret? {
        guard digits.count == 64 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 32)
        defer { Wiping.wipe(&bytes) }
        for (index, digit) in digits.enumerated() {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
            default: return nil
            }
            bytes[index / 2] |= index.isMultiple(of: 2) ? value << 4 : value
        }
        return bytes.withUnsafeBytes { Secret(locking: $0) }
    }

    private init(lines: [Line]) throws(Fault) {
        let keys = lines.compactMap { if case .key(let key) = $0 { key } else { nil } }
        guard keys.count <= Self.mostKeys else { throw Fault("holds more than \(Self.mostKeys) keys") }
        guard Set(keys.map(\.id)).count == keys.count else { throw Fault("holds a key twice") }
        guard let current = keys.first(where: { !$0.isNext }), let oldest = keys.last, !oldest.isNext else {
            throw Fault("must hold 64 hexadecimal digits, on a line that does not end with next, as its last key")
        }
        guard keys.dropFirst().allSatisfy({ !$0.isNext }) else { throw Fault("only its first key may be next") }
        self.init(lines: lines, current: current, oldest: oldest)
    }

    private static let explanation = [
        "# The master keys of this installation, one on each line, the newest first. 'twoefay rekey' changes them.",
        "# The first key seals, unless it ends with 'next'; every key opens. Operation ids are derived from the last key.",
    ]

    var file: [UInt8] {
        var text: [String] = []
        for line in lines {
            switch line {
            case .text(let line): text.append(line)
            case .key(let key):
                if let madeAt = key.madeAt { text.append(Self.made + madeAt.rfc3339) }
                text.append(Hex.encode(key.secret.reveal()) + (key.isNext ? " next" : ""))
            }
        }
        return Array((text.joined(separator: "\n") + "\n").utf8)
    }

    /// Returns a sealer whose keys are derived from the master keys. The id of a sealing key is a
    /// hash of it.
    public func sealer() throws(CryptoFailure) -> Sealer { try dataKeys.sealer() }

    public func usableSealer() throws(Failure) -> Sealer { try dataKeys.usableSealer() }

    /// The keys that a relay works with, all derived from the master keys.
    public var dataKeys: DataKeys {
        DataKeys(
            sealing: keys.map { Sealer.Key(id: $0.id, key: Self.sealing($0.secret), isNext: $0.isNext) },
            signing: keys.map { Self.signing($0.secret) },
            relay: RelayKeys(masterKey: secret))
    }

    /// Returns an authenticator for rows. Its keys are derived separately and have the ids of the
    /// sealing keys.
    public func rowAuthenticator() throws(CryptoFailure) -> RowAuthenticator { try dataKeys.rowAuthenticator() }

    public func usableRowAuthenticator() throws(Failure) -> RowAuthenticator { try dataKeys.usableRowAuthenticator() }

    private static func signing(_ secret: Secret) -> Secret {
        Secret(HMAC.sha256(key: secret, Array("twoefay rows".utf8)))
    }

    private static func sealing(_ secret: Secret) -> Secret {
        Secret(HMAC.sha256(key: secret, Array("twoefay sealing".utf8)))
    }

    private static func id(of secret: Secret) -> String {
        Hex.encode(SHA256.hash(sealing(secret).reveal()).prefix(4))
    }
}

/// The changes that `twoefay rekey` makes. They work line by line, so comments in the file stay.
extension MasterKey {
    /// The key that does not seal yet; nil if there is none.
    public var next: Key? { keys.first { $0.isNext } }

    /// The keys that only open what they sealed before.
    public var old: [Key] { keys.filter { !$0.isNext && $0.id != current.id } }

    /// Returns a copy with one more key, which does not seal yet.
    public func adding(_ secret: Secret, at now: Timestamp) throws(Fault) -> MasterKey {
        var lines = lines
        let index = lines.firstIndex { if case .key = $0 { true } else { false } } ?? lines.endIndex
        lines.insert(.key(Key(secret: secret, isNext: true, madeAt: now)), at: index)
        if !lines.contains(where: { if case .text(Self.explanation[0]) = $0 { true } else { false } }) {
            lines = Self.explanation.map { .text($0) } + lines
        }
        return try MasterKey(lines: lines)
    }

    /// Returns a copy in which the next key seals.
    public func usingNext() throws(Fault) -> MasterKey {
        try MasterKey(
            lines: lines.map { line in
                guard case .key(var key) = line else { return line }
                key.isNext = false
                return .key(key)
            })
    }

    /// Returns a copy without the keys of these ids.
    public func dropping(_ ids: [String]) throws(Fault) -> MasterKey {
        try MasterKey(
            lines: lines.filter { line in
                guard case .key(let key) = line else { return true }
                return !ids.contains(key.id)
            })
    }
}

extension Settings {
    /// Loads the master key alone, for commands that need no other file.
    public func loadMasterKey() throws(Failure) -> MasterKey {
        let path = path(of: masterKey)
        let file: Secret
        do throws(Files.Problem) {
            file = try Files.readSecret(path)
        } catch {
            throw Failure(
                .failed, error.text, next: "Restore the file that 'twoefay init' created from your copy.")
        }
        do throws(MasterKey.Fault) {
            return try MasterKey(file: file)
        } catch {
            throw Failure(.failed, "\(path): \(error.message)", next: "Restore the file from your copy.")
        }
    }

    /// Replaces the file as a whole. The new file keeps the owner and the permissions.
    public func replaceMasterKey(by key: MasterKey) throws(Failure) {
        do throws(Files.Problem) {
            try Files.rewrite(path(of: masterKey), key.file)
        } catch {
            throw Failure(
                .failed, error.text,
                next: "The file is unchanged. Run the command as its owner, with write access to its directory.")
        }
    }
}
