import Synchronization
import Testing

@testable import Hardening

/// A simulated kernel with the features that a test sets.
struct TestKernel: HardeningKernel {
    var landlockVersion: Int? = 5
    var filterShortcoming: String?
    var fault: HardeningFault?

    func restrictFiles(_ rules: LandlockRules) throws(HardeningFault) { if let fault { throw fault } }
    func install(_ filter: SyscallFilter) throws(HardeningFault) { if let fault { throw fault } }
}

@Suite struct KernelTests {
    @Test func completeKernelLeavesNothingMissing() {
        let applied = Hardening.apply(.system, on: TestKernel())
        #expect(applied.missing.isEmpty && applied.rules == .system)
    }

    @Test func missingMeasureIsNamedAndTheRestApplied() {
        let applied = Hardening.apply(.system, on: TestKernel(landlockVersion: nil))
        #expect(Array(applied.missing.keys) == [.landlock] && applied.rules == nil)
        let old = TestKernel(landlockVersion: nil, filterShortcoming: "none here")
        #expect(Hardening.missing(in: old).count == 2)
        #expect(Hardening.apply(.system, on: old).missing[.seccomp] == "none here")
    }

    @Test func measureRefusedByTheKernelCountsAsMissing() {
        let applied = Hardening.apply(.system, on: TestKernel(fault: HardeningFault("refused")))
        #expect(applied.missing == [.landlock: "refused", .seccomp: "refused"] && applied.rules == nil)
    }
}
