import Synchronization
import TestSupport
import Testing

@testable import Daemon

/// Progress appears at a terminal, and not more often than people can read.
@Suite struct ProgressLinesTests {
    private final class Written: Sendable {
        private let all = Mutex<[String]>([])
        var lines: [String] { all.withLock { $0 } }
        func add(_ line: String) { all.withLock { $0.append(line) } }
    }

    @Test func linesComeAtMostOnceASecond() {
        let (time, written) = (TestTime(), Written())
        let progress = ProgressLines(isShown: true, time: time) { written.add($0) }
        // Short work writes nothing.
        progress.show(1, of: 9, "tokens")
        #expect(written.lines == [])
        for done in 2...9 {
            time.advance(by: .milliseconds(400))
            progress.show(done, of: 9, "tokens")
        }
        #expect(written.lines == ["4 of 9 tokens", "7 of 9 tokens"])
    }

    @Test func scriptsGetNoLine() {
        let (time, written) = (TestTime(), Written())
        let progress = ProgressLines(isShown: false, time: time) { written.add($0) }
        time.advance(by: .seconds(100))
        progress.show("9 rows checked")
        #expect(written.lines == [])
    }

    /// The text of a line may cost something.
    @Test func textIsMadeForALineOnly() {
        let time = TestTime()
        let progress = ProgressLines(isShown: true, time: time) { _ in }
        var made = 0
        func text() -> String {
            made += 1
            return ""
        }
        progress.show(text())
        time.advance(by: .seconds(1))
        progress.show(text())
        progress.show(text())
        #expect(made == 1)
    }

    @Test func sharesAreInPercent() {
        let (time, written) = (TestTime(), Written())
        let progress = ProgressLines(isShown: true, time: time) { written.add($0) }
        for (done, all) in [(Int64(0), Int64(3)), (1, 3), (3, 3), (0, 0)] {
            time.advance(by: .seconds(1))
            progress.show(done, of: all, percent: "copied")
        }
        #expect(written.lines == ["0 % copied", "33 % copied", "100 % copied", "100 % copied"])
    }

    // MARK: The control socket

    @Test(arguments: [
        (["user", "list"], true, "{\"progress\":\"5 users read\"}\n"), (["user", "list"], false, ""),
        (["user", "list", "--json"], true, ""),
    ])
    func callerGetsTheLinesThatItWants(_ arguments: [String], _ wants: Bool, _ line: String) throws {
        let served = try ServedInvocation(arguments, wantsProgress: wants)
        let time = TestTime()
        let progress = served.invocation.progress(time: time)
        progress.show("1 user read")
        time.advance(by: .seconds(2))
        progress.show("5 users read")
        #expect(served.answer() == line + "{\"status\":\"ok\"}\n")
    }
}
