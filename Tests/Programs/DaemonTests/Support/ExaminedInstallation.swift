import Hardening
import Log
import TestSupport
import World

@testable import Daemon

/// An installation, examined on a machine whose facts the test chooses.
struct ExaminedInstallation {
    let directory: TemporaryDirectory
    /// The port of its relay, on which nobody listens.
    let port: FreePort
    var facts: HostFacts

    init() throws {
        directory = try TemporaryDirectory()
        port = try FreePort()
        let listen = HostPort(host: "127.0.0.1", port: port.port)
        try NewInstallation(directory: directory("relay"), listen: listen).create(
            log: Log(minimum: .error, sink: MemorySink()))
        facts = Self.healthy
    }

    /// The facts of a machine without a fault.
    static let healthy = HostFacts(
        descriptors: { (1024, 524_288) },
        space: { _ in HostFacts.Space(free: 500 << 30, all: 1000 << 30, freeInodes: 0.9) },
        isClockSynchronised: { true }, hasRandomness: { true }, unit: { _ in nil }, kernel: CompleteKernel(),
        time: SystemTime(), relayAccount: { RelayAccount.find($0, unit: nil) })

    func path(_ name: String) -> String { directory("relay/\(name)") }
    var settings: String { path("twoefay.yaml") }

    func set(_ key: String, to value: String) throws {
        var text = try TextFile.read(settings)
        try text.set(key, to: value)
        try TextFile.write(text, to: settings)
    }

    func doctor() throws -> Doctor {
        let (file, problems) = try SettingsReader.examine(Array(TextFile.bytes(settings)), file: settings)
        guard problems.isEmpty else { throw Child.Problem(description: "\(problems)") }
        return Doctor(file, path: settings, facts: facts)
    }

    func examined(offline: Bool = true) async throws -> [Finding] {
        let doctor = try doctor()
        return await blocking { doctor.examine(offline: offline) }
    }
}

/// A kernel with all measures of hardening.
struct CompleteKernel: HardeningKernel {
    var landlockVersion: Int? { 3 }
    var filterShortcoming: String? { nil }
    func restrictFiles(_ rules: LandlockRules) throws(HardeningFault) {}
    func install(_ filter: SyscallFilter) throws(HardeningFault) {}
}

/// A kernel with none of them.
struct BareKernel: HardeningKernel {
    var landlockVersion: Int? { nil }
    var filterShortcoming: String? { "the kernel has no seccomp filter" }
    func restrictFiles(_ rules: LandlockRules) throws(HardeningFault) { throw HardeningFault("no Landlock") }
    func install(_ filter: SyscallFilter) throws(HardeningFault) { throw HardeningFault("no seccomp") }
}

extension [Finding] {
    /// Returns the findings of a check.
    func of(_ check: String) -> [Finding] { filter { $0.check == check } }

    /// Whether a check found this state, with these words.
    func has(_ check: String, _ state: Finding.State, _ words: String = "") -> Bool {
        of(check).contains { $0.state == state && (words.isEmpty || $0.measured.contains(words)) }
    }
}
