import Bytes
import Daemon
import Domain
import Glibc
import TokenFiles
import World

/// The input of `import`. It is read completely before the store is used.
struct TokenFileInput {
    /// A token, and the name of its user.
    struct Owned {
        let username: String
        let seed: Seed
    }

    private let path: String
    private let seeds: [Seed]
    private let owners: [String: String]?
    let remarks: [String]

    init(_ invocation: Invocation, at now: Timestamp = SystemTime().now()) throws(Failure) {
        path = invocation.operand(0)
        let bytes = try Self.read(path)
        let key = try Self.key(invocation)
        let format = try Self.format(invocation, bytes)
        let file: SeedFile
        do throws(SeedFaults) {
            switch format {
            case .pskc: file = try PSKCReader.read(bytes, key: key, at: now)
            case .csv: file = try CSVTokenReader.read(bytes)
            }
        } catch {
            throw Self.failure(path, error)
        }
        seeds = file.seeds
        owners = try invocation.value("map").map { (map) throws(Failure) in try Self.map(map) }
        var remarks = file.remarks
        if Files.isReadableByOthers(path) {
            remarks.append(
                "\(path) can be read by others than its owner, and holds the secrets of the codes. Remove it, or chmod 600 it."
            )
        }
        self.remarks = remarks
    }

    // MARK: File

    private enum Format: String {
        case pskc, csv
    }

    private static func format(_ invocation: Invocation, _ bytes: [UInt8]) throws(Failure) -> Format {
        guard let text = invocation.value("format") else {
            let first = bytes.first { ![0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf].contains($0) }
            return first == UInt8(ascii: "<") ? .pskc : .csv
        }
        guard let format = Format(rawValue: text) else {
            throw Failure(
                .usage, "--format must be pskc or csv", next: "Without --format, the first character of FILE decides.")
        }
        return format
    }

    private static func read(_ path: String) throws(Failure) -> [UInt8] {
        do throws(Files.Problem) {
            return try Files.read(path, atMost: CSVTokenReader.mostBytes)
        } catch {
            throw Failure(.failed, error.text, next: "Nothing was changed. Give a file that you can read.")
        }
    }

    private static func map(_ path: String) throws(Failure) -> [String: String] {
        let bytes = try read(path)
        do throws(SeedFaults) {
            return try CSVTokenReader.readMap(bytes)
        } catch {
            throw failure(path, error)
        }
    }

    private static func failure(_ path: String, _ faults: SeedFaults) -> Failure {
        var lines = faults.faults.map { "\(path):\($0.line): \($0.message)" }
        if faults.count > faults.faults.count { lines.append("and \(faults.count - faults.faults.count) more") }
        let next: String
        switch faults.need {
        case .key(let name):
            next =
                "Give its pre-shared key\(name.map { " (\($0))" } ?? "") with --key-file. The sender delivers it separately from the file."
        case .password(let name):
            next =
                "Give its password\(name.map { " (\($0))" } ?? "") with --password-file. The sender delivers it separately from the file."
        case nil: next = "Nothing was changed. Correct the file, then try again."
        }
        return Failure(.failed, lines.joined(separator: "\n"), next: next)
    }

    // MARK: Key

    private static func key(_ invocation: Invocation) throws(Failure) -> PSKCKey? {
        switch (invocation.value("key-file"), invocation.value("password-file")) {
        case (nil, nil): return nil
        case (.some, .some):
            throw Failure(
                .usage, "--key-file and --password-file exclude each other",
                next: "A file is encrypted under only one of them.")
        case (let path?, nil): return .shared(try sharedKey(path))
        case (nil, let path?):
            var bytes = try secret(path)
            if bytes.last == 0x0a { bytes.removeLast() }
            if bytes.last == 0x0d { bytes.removeLast() }
            guard !bytes.isEmpty else {
                throw Failure(.failed, "\(path): is empty", next: "Write the password of the PSKC file to it.")
            }
            return .password(Secret(bytes))
        }
    }

    /// Reads a pre-shared key. AES keys have 16, 24 or 32 bytes.
    private static func sharedKey(_ path: String) throws(Failure) -> Secret {
        let bytes = try secret(path)
        let letters = bytes.filter { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }
        if [32, 48, 64].contains(letters.count),
            let key = Hex.decode(String(decoding: letters, as: UTF8.self).lowercased())
        {
            return Secret(key)
        }
        guard [16, 24, 32].contains(bytes.count) else {
            throw Failure(
                .failed, "\(path): must hold a key of 16, 24 or 32 bytes",
                next: "Write the key to it in hexadecimal digits, or as bytes.")
        }
        return Secret(bytes)
    }

    private static func secret(_ path: String) throws(Failure) -> [UInt8] {
        do throws(Files.Problem) {
            return try Files.readPrivate(path)
        } catch {
            throw Failure(
                .failed, error.text, next: "Nothing was changed. Give a file that only its owner can read.")
        }
    }

    // MARK: Owners

    /// The least length of a secret. RFC 4226 requires at least 128 bits.
    private static let fewestBytes = 16

    /// Returns every token with its user. The map takes precedence over the user name in the token
    /// file, because it is keyed by the serial number printed on the token.
    func owned() throws(Failure) -> [Owned] {
        var faults: [String] = []
        var owned: [Owned] = []
        var firstLines: [String: Int] = [:]
        for seed in seeds {
            let label = seed.serial.map { "the token \($0)" } ?? "this token"
            func fault(_ message: String) { faults.append("\(path):\(seed.line): \(label) \(message)") }
            guard seed.secret.count >= Self.fewestBytes else {
                fault("has a secret of \(seed.secret.count) bytes; the minimum is \(Self.fewestBytes)")
                continue
            }
            guard let username = seed.serial.flatMap({ owners?[$0] }) ?? seed.username else {
                fault("has no user: \(owners == nil ? "name its user in a --map" : "the map does not list it")")
                continue
            }
            if let line = firstLines.updateValue(seed.line, forKey: "\(seed.kind.factor.rawValue) \(username)") {
                fault("is the second \(seed.kind.factor.rawValue) token of \(username), after line \(line)")
                continue
            }
            owned.append(Owned(username: username, seed: seed))
        }
        guard faults.isEmpty else {
            let more = faults.count > 20 ? ["and \(faults.count - 20) more"] : []
            throw Failure(
                .failed, (faults.prefix(20) + more).joined(separator: "\n"),
                next: "Nothing was changed. A user can have one token of each kind. Correct or remove these tokens.")
        }
        return owned
    }
}
