import CLinux
import CSeccomp
import Glibc

/// The kernel as far as hardening asks it for something; tests give one that lacks a part.
public protocol HardeningKernel: Sendable {
    /// The version of Landlock's interface, or nil if the kernel has none.
    var landlockVersion: Int? { get }
    /// Why system calls cannot be filtered, or nil if they can.
    var filterShortcoming: String? { get }
    /// Restricts the calling thread, and all threads that it starts from then on, to what the rules allow.
    func restrictFiles(_ rules: LandlockRules) throws(HardeningFault)
    /// Installs the filter for all threads of the process.
    func install(_ filter: SyscallFilter) throws(HardeningFault)
}

/// A part of hardening that the kernel refused, and why.
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
        if hasSanitizer { return "a sanitizer is built in, which starts processes" }
        return seccomp_api_get() >= 1 ? nil : "the kernel filters no system calls (CONFIG_SECCOMP_FILTER)"
    }

    public func restrictFiles(_ rules: LandlockRules) throws(HardeningFault) {
        guard let version = landlockVersion else { throw HardeningFault("the kernel has no Landlock") }
        guard hasSanitizer else { return try rules.restrict(version: version) }
        // The process that names functions reads this program's file.
        var rules = rules
        rules.allowExactly("/proc/self/exe", .reading)
        try rules.restrict(version: version, startsPrograms: true)
    }

    public func install(_ filter: SyscallFilter) throws(HardeningFault) { try filter.install() }

    /// Whether this program was built with a sanitizer. The leak detector starts a process at exit,
    /// and both sanitizers start one to name functions in a report. Without those names the
    /// suppressions of the thread sanitizer match nothing, and it ends the process.
    private var hasSanitizer: Bool { dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil }
}
