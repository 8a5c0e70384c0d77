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
                "\(path) can be read by others than its owner: it holds what codes are made of. Remove it, or chmod 600 it."
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
                .usage, "--format must be pskc or csv", next: "Without it, the first character of FILE tells.")
        }
        return format
    }

    private static func read(_ path: String) throws(Failure) -> [UInt8] {
        do throws(Files.Problem) {
            return try Files.read(path, atMost: CSVTokenReader.mostBytes)
        } catch {
            throw Failure(.failed, error.text, next: "Nothing was changed. Name a file that can be read.")
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
                "Give its pre-shared key\(name.map { " (\($0))" } ?? "") with --key-file; it came on another way than the file."
        case .password(let name):
            next =
                "Give its password\(name.map { " (\($0))" } ?? "") with --password-file; it came on another way than the file."
        case nil: next = "Nothing was changed. Mend the file, then try again."
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
                next: "A file is encrypted under one of them.")
        case (let path?, nil): return .shared(try sharedKey(path))
        case (nil, let path?):
            var bytes = try secret(path)
            if bytes.last == 0x0a { bytes.removeLast() }
            if bytes.last == 0x0d { bytes.removeLast() }
            guard !bytes.isEmpty else {
                throw Failure(.failed, "\(path): is empty", next: "It must hold the password of the file.")
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
                .failed, "\(path): is no key of 16, 24 or 32 bytes",
                next: "It must hold the key in hexadecimal digits, or its bytes.")
        }
        return Secret(bytes)
    }

    private static func secret(_ path: String) throws(Failure) -> [UInt8] {
        do throws(Files.Problem) {
            return try Files.readPrivate(path)
        } catch {
            throw Failure(
                .failed, error.text, next: "Nothing was changed. It must be a file that its owner alone can read.")
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
        var places: [String: Int] = [:]
        for seed in seeds {
            let called = seed.serial.map { "the token \($0)" } ?? "the token here"
            func fault(_ message: String) { faults.append("\(path):\(seed.line): \(called) \(message)") }
            guard seed.secret.count >= Self.fewestBytes else {
                fault("has a secret of \(seed.secret.count) bytes; \(Self.fewestBytes) are the fewest that are taken")
                continue
            }
            guard let username = seed.serial.flatMap({ owners?[$0] }) ?? seed.username else {
                fault("belongs to nobody: \(owners == nil ? "say in a --map whose it is" : "the map does not have it")")
                continue
            }
            if let line = places.updateValue(seed.line, forKey: "\(seed.kind.factor.rawValue) \(username)") {
                fault("is the second \(seed.kind.factor.rawValue) token of \(username), after line \(line)")
                continue
            }
            owned.append(Owned(username: username, seed: seed))
        }
        guard faults.isEmpty else {
            let more = faults.count > 20 ? ["and \(faults.count - 20) more"] : []
            throw Failure(
                .failed, (faults.prefix(20) + more).joined(separator: "\n"),
                next: "Nothing was changed. A user has one token of a kind; take out or mend what is wrong.")
        }
        return owned
    }
}
