import Glibc

@testable import Hardening

/// Checks inside a restricted process, which can report results only by its exit status.
struct RestrictedProcess {
    private var failures = 0

    /// Restricts this process to the files of the system and one writable directory.
    init(changing directory: String) {
        var rules = LandlockRules.system
        rules.allow(directory, .changing)
        check("everything is in force", Hardening.apply(rules).missing.isEmpty)
    }

    mutating func check(_ what: String, _ isTrue: Bool) {
        guard !isTrue else { return }
        failures += 1
        print("failed: \(what), errno \(errno)")
    }

    mutating func refuses(_ what: String, with number: Int32 = EPERM, _ call: () -> Bool) {
        errno = 0
        let isDone = call()
        check("\(what) is refused", !isDone && errno == number)
    }

    func end() -> Never { exit(failures == 0 ? 0 : 1) }
}
