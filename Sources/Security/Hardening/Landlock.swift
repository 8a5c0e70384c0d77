import CLinux
import Glibc

/// The translation of the rules for the kernel: access rights by version, and the three system
/// calls.
extension LandlockRules {
    /// Access rights for files and directories, with the kernel's bit numbers.
    private struct Rights: OptionSet {
        let rawValue: UInt64

        static let execute = Rights(rawValue: 1 << 0)
        static let writeFile = Rights(rawValue: 1 << 1)
        static let readFile = Rights(rawValue: 1 << 2)
        static let readDirectory = Rights(rawValue: 1 << 3)
        static let removeFile = Rights(rawValue: 1 << 5)
        static let makeFile = Rights(rawValue: 1 << 8)
        static let truncate = Rights(rawValue: 1 << 14)

        /// The rights that a version of the interface knows. The kernel refuses a rule set with
        /// other rights.
        static func known(to version: Int) -> Rights {
            // Version 1 has 13 rights. Version 2 adds moving between directories, 3 adds
            // truncating, 5 adds device control.
            let count = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13
            return Rights(rawValue: (1 << UInt64(count)) - 1)
        }

        /// The rights that a rule for a file may contain. The kernel refuses other rights there.
        static let ofFiles: Rights = [.writeFile, .readFile, .truncate]

        init(rawValue: UInt64) { self.rawValue = rawValue }

        init(_ access: Access) {
            switch access {
            case .reading: self = [.readFile, .readDirectory]
            case .writing: self = [.readFile, .readDirectory, .writeFile]
            case .changing: self = [.readFile, .readDirectory, .writeFile, .truncate, .makeFile, .removeFile]
            }
        }
    }

    /// Removes every right that the kernel knows from the calling thread and the threads that it
    /// starts, except those of the rules.
    ///
    /// - Parameter startsPrograms: keeps the right to start programs.
    func restrict(version: Int, startsPrograms: Bool = false) throws(HardeningFault) {
        let known = Rights.known(to: version).subtracting(startsPrograms ? .execute : [])
        var handled = clinux_landlock_ruleset(handled_access_fs: known.rawValue)
        let ruleset = clinux_landlock_create(&handled)
        guard ruleset >= 0 else { throw HardeningFault("Landlock", errno: errno) }
        defer { close(ruleset) }
        for rule in rules { try Self.add(rule, known, to: ruleset) }
        guard clinux_prctl(PR_SET_NO_NEW_PRIVS, 1) == 0, clinux_landlock_restrict(ruleset) == 0 else {
            throw HardeningFault("Landlock", errno: errno)
        }
    }

    private static func add(_ rule: Rule, _ known: Rights, to ruleset: Int32) throws(HardeningFault) {
        let place = open(rule.path, O_PATH | O_CLOEXEC)
        // A file that was removed in the meantime needs no rule.
        guard place >= 0 else { return }
        defer { close(place) }
        var state = stat()
        guard fstat(place, &state) == 0 else { throw HardeningFault("Landlock, \(rule.path)", errno: errno) }
        var rights = Rights(rule.access).intersection(known)
        if state.st_mode & S_IFMT != S_IFDIR { rights.formIntersection(.ofFiles) }
        var beneath = clinux_landlock_path_beneath(allowed_access: rights.rawValue, parent_fd: place)
        guard clinux_landlock_add(ruleset, &beneath) == 0 else {
            throw HardeningFault("Landlock, \(rule.path)", errno: errno)
        }
    }
}
