import CLinux
import CSeccomp
import Glibc

/// The kernel functions that hardening uses. Tests implement a kernel that lacks some of them.
public protocol HardeningKernel: Sendable {
    /// The version of Landlock's interface; nil if the kernel has no Landlock.
    var landlockVersion: Int? { get }
    /// The reason why system calls cannot be filtered; nil if they can.
    var filterShortcoming: String? { get }
    /// Restricts the calling thread, and all threads that it starts afterwards, to the rules.
    func restrictFiles(_ rules: LandlockRules) throws(HardeningFault)
    /// Installs the filter for all threads of the process.
    func install(_ filter: SyscallFilter) throws(HardeningFault)
}

/// A measure that the kernel refused, with the reason.
public struct HardeningFault: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }

    init(_ what: String, errno number: Int32) {
        self.init("\(what): \(String(cString: strerror(number)))")
    }
}

/// The kernel that this process runs on.
public struct SystemKernel: HardeningKernel {
    public init() {}

    public var landlockVersion: Int? {
        let version = clinux_landlock_version()
        return version > 0 ? Int(version) : nil
    }

    public var filterShortcoming: String? {
        if hasSanitizer { return "the program contains a sanitizer, which starts processes" }
        return seccomp_api_get() >= 1 ? nil : "the kernel has no seccomp filter (CONFIG_SECCOMP_FILTER)"
    }

    public func restrictFiles(_ rules: LandlockRules) throws(HardeningFault) {
        guard let version = landlockVersion else { throw HardeningFault("the kernel has no Landlock") }
        guard hasSanitizer else { return try rules.restrict(version: version) }
        // A sanitizer starts a process to find the names of functions. That process reads this
        // program and all libraries, wherever they are.
        var rules = rules
        rules.allowExactly("/", .reading)
        try rules.restrict(version: version, startsPrograms: true)
    }

    public func install(_ filter: SyscallFilter) throws(HardeningFault) { try filter.install() }

    /// Whether this program was built with a sanitizer. The leak detector starts a process at exit,
    /// and both sanitizers start one to find the names of functions for a report. Without those
    /// names the suppressions of the thread sanitizer match nothing, and it ends the process.
    private var hasSanitizer: Bool { dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil }
}
