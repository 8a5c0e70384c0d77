import Glibc
import JSON
import Synchronization
import TestSupport
import Testing

@testable import Daemon

/// The run of the checks of `twoefay doctor`, and their report.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ExaminationTests {
    /// A check that does not end before the test.
    private final class Hanging: Sendable {
        private let isOver = Atomic(false)

        func wait() { while !isOver.load(ordering: .acquiring) { sched_yield() } }
        func end() { isOver.store(true, ordering: .releasing) }
    }

    @Test func checkThatHangsDelaysNoOther() async {
        let hanging = Hanging()
        var slow = Check("slow") {
            hanging.wait()
            return []
        }
        slow.limit = .milliseconds(20)
        let checks = [
            Check("first") { [Finding("first", .ok, "1")] }, slow,
            Check("last") { [Finding("last.a", .warning, "2"), Finding("last.b", .failure, "3")] },
        ]
        let time = TestTime()
        let lines = Mutex<[String]>([])
        let progress = ProgressLines(isShown: true, time: time) { line in lines.withLock { $0.append(line) } }
        time.advance(by: .seconds(1))
        let findings = await blocking { Examination.run(checks, progress: progress) }
        hanging.end()
        // A person learns what is waited for.
        #expect(lines.withLock { $0 } == ["waiting for slow"])
        #expect(findings.map(\.check) == ["first", "slow", "last.a", "last.b"])
        #expect(findings[1].state == .failure && findings[1].measured.hasPrefix("no result within"))
        #expect(findings[1].remedy != nil)
    }

    @Test func offlineAsksNobody() async {
        let asked = Atomic(0)
        let count = { @Sendable (name: String) -> [Finding] in
            asked.add(1, ordering: .relaxed)
            return [Finding(name, .ok, "")]
        }
        let checks = [Check("near") { count("near") }, Check("far", needsNetwork: true) { count("far") }]
        let findings = await blocking { Examination.run(checks, offline: true) }
        #expect(findings.map(\.state) == [.ok, .skipped] && asked.load(ordering: .relaxed) == 1)
        #expect(findings[1].measured.contains("--offline"))
    }

    @Test func reportCountsAndFailsOnlyForFailures() throws {
        let good = [Finding("a", .ok, "1"), Finding("bb", .warning, "2", remedy: "do it"), Finding("c", .skipped, "3")]
        let report = Finding.report(good)
        #expect(report.code == .ok)
        #expect(report.text.contains("ok       a   1\nwarning  bb  2\n             do it\nskipped  c   3\n"))
        #expect(report.text.hasSuffix("\n1 ok, 1 warning, 0 failure, 1 skipped."))
        let bad = Finding.report(good + [Finding("d", .failure, "4", remedy: "mend it")])
        #expect(bad.code == .failed)
        let json = try #require(bad.json.object)
        #expect(json["healthy"] == false && json["counts"]?.object?["failure"] == 1)
        let last = try #require(json["checks"]?.array?.last?.object)
        #expect(last["check"] == "d" && last["state"] == "failure" && last["measured"] == "4")
        #expect(last["remedy"] == "mend it" && json["checks"]?.array?.first?.object?["remedy"] == .null)
    }
}
