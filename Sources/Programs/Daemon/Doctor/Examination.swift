import EventLoop
import Synchronization
import World

/// A check of `twoefay doctor`: it measures something, and returns its findings.
struct Check: Sendable {
    let name: String
    /// Whether it connects to something. `--offline` skips it.
    var needsNetwork = false
    /// The time that it may take. Name resolution alone can block for longer.
    var limit = Duration.seconds(10)
    let run: @Sendable () -> [Finding]

    init(_ name: String, needsNetwork: Bool = false, _ run: @escaping @Sendable () -> [Finding]) {
        self.name = name
        self.needsNetwork = needsNetwork
        self.run = run
    }
}

/// Runs checks, each on a thread of its own, because most of them wait for another machine.
///
/// Invariant: a check that hangs delays the report by its limit at most, and no other check. Its
/// thread is then left to the end of the process. The findings have the order of the checks, so two
/// reports can be compared.
///
/// `ExaminationTests.swift` tests it.
enum Examination {
    private final class Result: Sendable {
        let findings = Mutex<[Finding]?>(nil)
    }

    static func run(
        _ checks: [Check], offline: Bool = false, time: any TimeSource = SystemTime(), progress: ProgressLines? = nil
    ) -> [Finding] {
        let start = time.instant()
        let begun = checks.map { check in begin(check, offline: offline) }
        return zip(checks, begun).flatMap { check, begun -> [Finding] in
            let (result, worker) = begun
            // Each second, a person learns what is waited for.
            var left = check.limit - (time.instant() - start)
            while let worker, left > .zero, !worker.join(within: min(left, .seconds(1))) {
                left -= .seconds(1)
                progress?.show("waiting for \(check.name)")
            }
            return result.findings.withLock { $0 } ?? [
                Finding(
                    check.name, .failure, "no result within \(check.limit.components.seconds) s",
                    remedy: "Something that it asks hangs: a name server, a file system or the other end.")
            ]
        }
    }

    private static func begin(_ check: Check, offline: Bool) -> (Result, WorkerThread?) {
        let result = Result()
        if check.needsNetwork, offline {
            result.findings.withLock { $0 = [Finding(check.name, .skipped, "not asked, because of --offline")] }
            return (result, nil)
        }
        do throws(SystemFailure) {
            let worker = try WorkerThread(name: "doctor")
            worker.post {
                let findings = check.run()
                result.findings.withLock { $0 = findings }
            }
            worker.stop()
            return (result, worker)
        } catch {
            let finding = Finding(
                check.name, .failure, "no thread: \(error)", remedy: "This machine is out of threads or memory.")
            result.findings.withLock { $0 = [finding] }
            return (result, nil)
        }
    }
}
