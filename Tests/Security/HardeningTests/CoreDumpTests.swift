import CLinux
import Glibc
import Testing

@testable import Hardening

@Suite struct CoreDumpTests {
    @Test func processWithoutDumpsCannotBeDumped() async {
        await #expect(processExitsWith: .success) {
            #expect(CoreDumps.refuse())
            #expect(clinux_prctl(PR_GET_DUMPABLE, 0) == 0)
            var limit = rlimit()
            #expect(getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0)
            #expect(limit.rlim_cur == 0 && limit.rlim_max == 0)
        }
    }
}
