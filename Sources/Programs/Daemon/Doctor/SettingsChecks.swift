import Bytes
import CLinux
import Crypto
import Glibc
import Storage
import World

/// The checks of the settings and their files: faults, permissions, the strength of secrets, and the
/// ends of certificates.
struct SettingsChecks: Sendable {
    let settings: Settings
    /// The path of the settings file.
    let path: String
    let places: SettingsPositions
    let facts: HostFacts

    var all: [Check] {
        [
            Check("settings") { files() }, Check("permissions") { [permissions()] }, Check("secrets") { secrets() },
            Check("certificates") { [certificates()] },
        ]
    }

    /// Reads all files as a start does. A file that this user may not read is not judged: the master
    /// key is often readable by the relay alone.
    private func files() -> [Finding] {
        var reader = LoadedFilesReader(settings: settings, now: facts.time.now())
        _ = reader.all()
        var hidden: [String] = []
        var findings: [Finding] = []
        let remedy = "docs/operators/files.md explains each file, and how to renew it."
        for (faults, state) in [(reader.problems, Finding.State.failure), (reader.warnings, .warning)] {
            for fault in faults {
                let file = fault.split(separator: ": ", maxSplits: 1).first.map(String.init) ?? ""
                if file.hasPrefix("/"), Files.exists(file), !Files.isReadable(file) {
                    hidden.append(file)
                } else {
                    findings.append(Finding("settings", state, places.located(fault, settings), remedy: remedy))
                }
            }
        }
        if !hidden.isEmpty {
            findings.append(
                Finding(
                    "settings", .warning, "this user may not read \(hidden.joined(separator: ", "))",
                    remedy: "Run the command as the user of the relay, to check these files, too."))
        }
        return findings.isEmpty ? [Finding("settings", .ok, "\(path) and all files that it names are valid")] : findings
    }

    // MARK: Permissions

    private func permissions() -> Finding {
        let files = settings.secretFiles.map { (key: $0.key, path: settings.path(of: $0.file)) }
            .filter { Files.exists($0.path) }
        var faults = files.filter { Files.isReadableByOthers($0.path) }.map {
            "\($0.path) (\($0.key)) is readable by others"
        }
        let directories = Set((files.map(\.path) + [path]).map(Files.directory(of:)))
        faults += directories.sorted().filter(Self.canBeReplaced).map { "others can replace files in \($0)" }
        if Self.mode(path) & 0o022 != 0 { faults.append("others can write to \(path)") }
        if let warning = settings.passwordWarning(path) { faults.append(warning) }
        guard faults.isEmpty else {
            return Finding(
                "permissions", .failure, faults.joined(separator: "; "),
                remedy: "chmod 600 the files, and 700 their directories. Replace a key that others may have read.")
        }
        return Finding("permissions", .ok, "\(files.count) secret files, each for its owner only")
    }

    private static func mode(_ path: String) -> mode_t {
        var state = stat()
        return stat(path, &state) == 0 ? state.st_mode : 0
    }

    /// Whether others can write to a directory, and so rename its files.
    private static func canBeReplaced(_ directory: String) -> Bool {
        let mode = mode(directory)
        return mode & 0o022 != 0 && mode & S_ISVTX == 0
    }

    // MARK: Secrets

    /// Passwords of fewer characters can be guessed.
    private static let shortest = 12
    /// The words that are guessed first. They add nothing to a password.
    private static let guessed = [
        "password", "passwort", "changeme", "change-me", "secret", "geheim", "twoefay", "letmein", "welcome", "admin",
        "qwerty", "qwertz", "123456",
    ]

    private func secrets() -> [Finding] {
        var weak: [String] = []
        var count = 0
        for (key, file) in settings.passwordFiles {
            guard let password = try? Files.readLine(settings.path(of: file)) else { continue }
            count += 1
            if let fault = Self.weakness(of: password.reveal(), isPIN: key == "pkcs11.pin_file") {
                weak.append("\(key) \(fault)")
            }
        }
        if case .mariadb(let server)? = try? settings.storageURL(), let password = server.password {
            count += 1
            if let fault = Self.weakness(of: Array(password.utf8)) { weak.append("storage: the password \(fault)") }
        }
        if settings.keys == nil, let keys = try? settings.loadMasterKey() {
            for key in keys.keys {
                count += 1
                if Self.isRegular(key.secret.reveal()) { weak.append("master_key_file has a key that is not random") }
            }
        }
        guard weak.isEmpty else {
            return [
                Finding(
                    "secrets", .warning, weak.joined(separator: "; "),
                    remedy: "Make passwords with 'openssl rand -base64 24', and master keys with 'twoefay rekey'.")
            ]
        }
        return [
            count == 0
                ? Finding("secrets", .skipped, "this user may read no password and no master key")
                : Finding(
                    "secrets", .ok, "no weak one among passwords and master keys, of which this user may read \(count)")
        ]
    }

    /// Returns why a password is weak; nil if it is not. The answer repeats nothing of it.
    static func weakness(of bytes: [UInt8], isPIN: Bool = false) -> String? {
        if Set(bytes).count <= 2 { return "repeats one or two characters" }
        // A token locks itself after a few wrong PINs.
        let least = isPIN ? 6 : shortest
        guard bytes.count >= least else { return "has fewer than \(least) characters" }
        if isPIN { return nil }
        if Set(zip(bytes, bytes.dropFirst()).map { $1 &- $0 }).count <= 2 { return "is a sequence" }
        let text = String(decoding: bytes, as: UTF8.self).lowercased()
        let rest = guessed.reduce(text) { $0.replacing($1, with: "") }
        return rest.utf8.count < min(least, text.utf8.count)
            ? "has fewer than \(least) characters beside words that are guessed first" : nil
    }

    /// Whether 32 bytes are surely not random: then half of them would not be equal to others, and
    /// their distances would differ.
    static func isRegular(_ bytes: [UInt8]) -> Bool {
        let steps = Set(zip(bytes, bytes.dropFirst()).map { $1 &- $0 })
        return Set(bytes).count < 16 || steps.count < 8
    }

    // MARK: Certificates

    private func certificates() -> Finding {
        let now = facts.time.now()
        let all = CertificateExpiry.all(settings)
        let due = all.compactMap { expiry in expiry.warning(at: now).map { (expiry, $0) } }
        guard due.isEmpty else {
            return Finding(
                "certificates", due.contains { $0.0.notAfter <= now } ? .failure : .warning,
                due.map(\.1).joined(separator: "; "),
                remedy: "docs/operators/keys.md says how to renew each of them.")
        }
        guard let first = all.min(by: { $0.notAfter < $1.notAfter }) else {
            return Finding("certificates", .skipped, "this user may read no certificate")
        }
        return Finding(
            "certificates", .ok,
            "the first of \(all.count) ends in \(first.days(at: now)) days: \(first.path) (\(first.setting))")
    }
}
