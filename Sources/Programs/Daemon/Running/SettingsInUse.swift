import Bytes
import Crypto
import JSON
import Relay
import World

/// The settings in use, with a digest of each file that a reload reads. Log and audit get from it
/// what a reload has changed.
///
/// Invariant: no secret can be found by it. A private file, and a setting that may hold a password of
/// its own, is named by a digest with a key that only this process has. A digest without a key would
/// let a reader of the audit try out passwords.
///
/// Tested in `ReloadedSettingsTests.swift`.
struct SettingsInUse: Sendable {
    let settings: Settings
    /// The digests, by the name of the file as written.
    private let digests: [String: String]
    /// The key of the digests that must not be guessed.
    private let key: Secret

    /// - Parameter operationsKey: the key from which that of the digests is derived.
    init(_ settings: Settings, operationsKey: Secret) {
        self.settings = settings
        let key = Secret(HMAC.sha256(key: operationsKey, Array("digests of files".utf8)))
        self.key = key
        let secret = Set(settings.secretFiles.map(\.file))
        var digests: [String: String] = [:]
        for file in settings.reloadedFiles {
            let path = settings.path(of: file)
            digests[file.written] = secret.contains(file) ? Self.digest(secret: path, key) : Self.digest(path)
        }
        self.digests = digests
    }

    /// The settings that differ in those that come after these.
    struct Difference {
        /// The settings, and then the files.
        fileprivate(set) var names: [String] = []
        fileprivate(set) var values = ChangedValues()
    }

    func difference(to new: SettingsInUse) -> Difference {
        var difference = Difference()
        func note(_ name: String, _ before: String?, _ after: String?) {
            guard before != after else { return }
            difference.names.append(name)
            difference.values.note(
                name, before.map { .string($0) } ?? .null, after.map { .string($0) } ?? .null)
        }
        for setting in SettingsKeys.all { note(setting.name, shown(setting), new.shown(setting)) }
        for name in Set(digests.keys).union(new.digests.keys).sorted() {
            note(name, digests[name], new.digests[name])
        }
        return difference
    }

    /// The longest value that the audit repeats.
    private static let longest = 2000

    private func shown(_ setting: SettingsKey) -> String? {
        guard let text = setting.text(settings) else { return nil }
        if setting.mayHoldSecrets { return "digest \(Self.keyed(Array(text.utf8), key))" }
        return text.utf8.count <= Self.longest ? text : "SHA-256 \(Hex.encode(SHA256.hash(Array(text.utf8))))"
    }

    private static func digest(_ path: String) -> String {
        if let names = try? Files.names(in: path) {
            let all = names.flatMap { name in Array(name.utf8) + [0] + ((try? Files.read("\(path)/\(name)")) ?? []) }
            return "SHA-256 \(Hex.encode(SHA256.hash(all)))"
        }
        guard let bytes = try? Files.read(path) else { return age(path) }
        return "SHA-256 \(Hex.encode(SHA256.hash(bytes)))"
    }

    /// The content is the key here, so that no copy of it is made outside of locked memory.
    private static func digest(secret path: String, _ key: Secret) -> String {
        guard let content = try? Files.readSecret(path) else { return age(path) }
        return "digest \(Hex.encode(Array(HMAC.sha256(key: content, key.reveal()).prefix(8))))"
    }

    private static func keyed(_ bytes: [UInt8], _ key: Secret) -> String {
        Hex.encode(Array(HMAC.sha256(key: key, bytes).prefix(8)))
    }

    /// Names a file that is too large to be read here by its time, such as the database of places.
    private static func age(_ path: String) -> String {
        (try? Files.modified(path)).map { "of \($0.rfc3339)" } ?? "cannot be read"
    }
}

extension Settings {
    /// The files whose content a reload uses. Those of directories are read by each sync.
    fileprivate var reloadedFiles: Set<FileName> {
        var own = readByRelay
        own.auditHeads = nil
        own.est = ESTService()
        own.webPush = WebPushService()
        own.push.authority = nil
        own.fcm.authority = nil
        own.directories = DirectoryList()
        return Set(Self.files(in: own))
    }
}
