import Daemon
import Glibc
import HTTP
import JSON
import Phone

/// The enrolments of one person on this machine, in one directory. Each is a file that only its
/// owner can read.
struct Keyring {
    let directory: String

    struct Entry {
        let path: String
        let enrolment: Enrolment

        /// The name of the phone in output.
        var title: String { "\(enrolment.website) at \(enrolment.relay.text)" }
    }

    static let option = Command.Option(
        "keys", .one("DIR"),
        "The directory of the enrolments (default: $XDG_DATA_HOME/twoefay or ~/.local/share/twoefay).")
    static let choice = Command.Option(
        "device", .one("ID"),
        "The device id or its beginning, or the website's name; required if there are several phones.")

    init(_ invocation: Invocation) throws(Failure) {
        if let given = invocation.value(Self.option.name) {
            directory = given
        } else if let data = Self.variable("XDG_DATA_HOME"), data.hasPrefix("/") {
            directory = Files.resolve("twoefay", in: data)
        } else if let home = Self.variable("HOME") {
            directory = Files.resolve(".local/share/twoefay", in: home)
        } else {
            throw Failure(
                .usage, "there is no home directory for the enrolments of phones", next: "Give a directory: --keys DIR")
        }
    }

    static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    // MARK: Reading

    /// Returns all enrolments, sorted by file name.
    func all() throws(Failure) -> [Entry] {
        guard Files.exists(directory) else { return [] }
        do throws(Files.Problem) {
            var entries: [Entry] = []
            for name in try Files.names(in: directory) where name.hasSuffix(".json") {
                let path = Files.resolve(name, in: directory)
                entries.append(Entry(path: path, enrolment: try Self.read(path)))
            }
            return entries
        } catch {
            throw Failure(
                .failed, error.text,
                next: "The file holds the key of a phone. Correct it, move it away, or bind the phone again.")
        }
    }

    private static func read(_ path: String) throws(Files.Problem) -> Enrolment {
        let bytes = try Files.readPrivate(path)
        do throws(Enrolment.Malformed) {
            return try Enrolment(kept: bytes)
        } catch {
            throw Files.Problem(path, "is not a valid enrolment: \(error.description)")
        }
    }

    /// Returns the enrolment that the command means. Without a choice there must be only one.
    func chosen(_ invocation: Invocation) throws(Failure) -> Entry {
        let found = try chosenAmongAll(invocation)
        guard found.count == 1, let entry = found.first else {
            let devices = found.map { "\($0.enrolment.device ?? "not bound yet") (\($0.title))" }
            throw Failure(
                .usage, "there are several phones: \(devices.joined(separator: ", "))",
                next: "Choose one: --device ID")
        }
        return entry
    }

    /// Returns all enrolments that the command means, at least one.
    func chosenAmongAll(_ invocation: Invocation) throws(Failure) -> [Entry] {
        let all = try all()
        guard !all.isEmpty else {
            throw Failure(
                .notFound, "there is no phone in \(directory)",
                next: "To bind one: twoefay phone enrol URI, with the URI or QR code of the website")
        }
        guard let choice = invocation.value(Self.choice.name) else { return all }
        let found = all.filter { entry in
            entry.enrolment.device?.hasPrefix(choice) == true || entry.enrolment.website == choice
        }
        guard !found.isEmpty else {
            throw Failure(
                .notFound, "there is no phone \(choice) in \(directory)",
                next: "'twoefay phone list' shows the phones.")
        }
        return found
    }

    /// Returns the enrolments that are bound, at least one.
    func bound(_ invocation: Invocation) throws(Failure) -> [Entry] {
        let bound = try chosenAmongAll(invocation).filter { $0.enrolment.device != nil }
        guard !bound.isEmpty else {
            throw Failure(
                .notFound, "the phone is not bound yet",
                next: "Run 'twoefay phone enrol URI' again, with the same URI as before.")
        }
        return bound
    }

    // MARK: Writing

    /// Adds an enrolment in a new file.
    func add(_ enrolment: Enrolment) throws(Failure) -> Entry {
        let name = "\(enrolment.website)-\(enrolment.thumbprint.prefix(12)).json"
        return try write(Entry(path: Files.resolve(name, in: directory), enrolment: enrolment))
    }

    /// Replaces the enrolment of a phone after it has changed.
    @discardableResult
    func update(_ entry: Entry, _ enrolment: Enrolment) throws(Failure) -> Entry {
        try write(Entry(path: entry.path, enrolment: enrolment))
    }

    /// Returns a function that stores an enrolment in place of this one, before a request is sent.
    func storing(_ entry: Entry) -> (Enrolment) throws(CallFailure) -> Void {
        { enrolment throws(CallFailure) in
            do throws(Failure) {
                try update(entry, enrolment)
            } catch {
                throw .unable(error.text)
            }
        }
    }

    private func write(_ entry: Entry) throws(Failure) -> Entry {
        do {
            try Files.makeDirectories(directory, mode: 0o700)
            try Files.replace(entry.path, JSONWriter.write(try entry.enrolment.json()), mode: 0o600)
        } catch {
            throw Failure(
                .failed, "the phone's key cannot be saved: \(error)", next: "Check --keys, and the free space.")
        }
        return entry
    }

    func remove(_ entry: Entry) { Files.remove(entry.path) }
}
