import Daemon
import EventLoop
import FakePushServices
import HTTP
import JSON
import TwoefayClient
import World

extension Demo {
    /// Runs three logins in the terminal. It takes about a minute, and blocks the calling thread.
    public static func runWalkthrough(
        _ options: Options, randomness: any Randomness = SystemRandomness()
    ) throws(Failure) -> Report {
        try run { loop, signals in await run(options, on: loop, signals, randomness) }
    }

    private static func run(
        _ options: Options, on loop: EventLoop, _ signals: Signals, _ randomness: any Randomness
    ) async -> Result<Report, Failure> {
        let narration = Narration(loop: loop, isShown: options.narrates)
        let plan = Sandbox.Plan(storage: options.storage, keepsFiles: options.keepsFiles, policies: [("number", "2")])
        let sandbox = Sandbox(
            loop: loop, narration: narration, plan: plan, randomness: randomness,
            onPush: { push in
                narration.message(
                    Message(.relay, .pushService, "POST /3/device/\(push.deviceToken.prefix(12))…", body: push.payload))
            })
        let completion = Completion<Result<[Walkthrough.LoginResult], Failure>>()
        let (sharedSandbox, sharedCompletion) = (LoopBound(sandbox, on: loop), LoopBound(completion, on: loop))
        sandbox.relayIsGone = { sharedCompletion.value.complete(.failure(gone(sharedSandbox.value.relay))) }
        loop.spawn {
            _ = await signals.next()
            sharedCompletion.value.complete(.failure(interrupted))
        }
        loop.spawn {
            let ended = await runLogins(on: sharedSandbox.value, randomness)
            sharedCompletion.value.complete(ended)
        }
        let ended = await completion.isComplete()
        await sandbox.tearDown()
        return report(ended, sandbox, narration, keepsFiles: options.keepsFiles)
    }

    private static func runLogins(
        on sandbox: Sandbox, _ randomness: any Randomness
    ) async -> Result<[Walkthrough.LoginResult], Failure> {
        let narration = sandbox.narration
        narration.chapter("Three logins with Twoefay, on this machine")
        narration.say(
            "Everything is made for this run and removed afterwards, so no token, code or address is hidden. Nothing "
                + "leaves this machine. Long texts are shortened with \"…\".")
        do throws(Failure) {
            let access = try await sandbox.setUp()
            guard let pushService = sandbox.pushService else { throw interrupted }
            let website: Website
            do {
                website = try Website(access, loop: sandbox.loop, time: sandbox.loop.time, randomness: randomness) {
                    narration.message($0)
                }
            } catch {
                throw Failure(.failed, "the website's certificate does not work: \(error)", next: Sandbox.remedy)
            }
            sandbox.onTearDown { await website.close() }
            let walkthrough = Walkthrough(
                sandbox: sandbox, narration: narration, website: website, pushService: pushService,
                randomness: randomness)
            do {
                return .success(try await walkthrough.run())
            } catch {
                let words = sandbox.relay?.tail.joined(separator: "\n") ?? ""
                throw Failure(
                    .failed, "the walkthrough failed: \(error)\n\(words)",
                    next: "The last lines of the relay's log are above. Try again with --keep to keep the whole log.")
            }
        } catch {
            return .failure(error)
        }
    }

    private static func gone(_ relay: RelayProcess?) -> Failure {
        Failure(
            .failed, "the relay ended by itself:\n" + (relay?.tail.joined(separator: "\n") ?? ""),
            next: "The last lines of its log are above. Try again with --keep to keep the whole log.")
    }

    private static func report(
        _ ended: Result<[Walkthrough.LoginResult], Failure>, _ sandbox: Sandbox, _ narration: Narration,
        keepsFiles: Bool
    ) -> Result<Report, Failure> {
        let kept = keepsFiles ? sandbox.directory?.path : nil
        if case .success(let logins) = ended {
            narration.chapter("Results")
            for login in logins {
                let reason = login.outcome.reason.map { " (\($0.rawValue))" } ?? ""
                let name = login.name + String(repeating: " ", count: max(0, 10 - login.name.count))
                narration.verdict(
                    "\(name)\(login.person)'s login: \(login.outcome.login.rawValue)\(reason), after "
                        + "\(login.took.inSeconds)" + (login.isAsExpected ? "" : ", which is not the expected result"),
                    isAsExpected: login.isAsExpected)
            }
        }
        if let kept {
            narration.done("The relay has ended. Its directory is kept: remove \(kept) when you no longer need it.")
        } else {
            narration.done("The relay has ended, and the directory of this run is removed.")
        }
        return ended.map { logins in
            let succeeded = logins.allSatisfy(\.isAsExpected)
            return Report(
                "",
                json: .object([
                    "succeeded": .bool(succeeded), "logins": .array(logins.map(\.json)),
                    "seconds": .number(Double(narration.elapsed.wholeMilliseconds) / 1000),
                    "relay": .object([
                        "origin": .string(sandbox.origin.settingsText),
                        "pid": sandbox.relay.map { .integer(Int64($0.pid)) } ?? .null,
                    ]),
                    "directory": sandbox.directory.map { .string($0.path) } ?? .null, "kept": .bool(keepsFiles),
                    "steps": .array(narration.steps),
                ]), code: succeeded ? .ok : .failed)
        }
    }
}

extension Walkthrough.LoginResult {
    fileprivate var json: JSONValue {
        .object([
            "login": .string(name), "user": .string(person), "challenge": .string(challenge),
            "result": .string(outcome.login.rawValue), "reason": outcome.reason.map { .string($0.rawValue) } ?? .null,
            "proof": outcome.proof.map { .string($0.rawValue) } ?? .null, "let_in": .bool(verdict.isLetIn),
            "as_expected": .bool(isAsExpected), "seconds": .number(Double(took.wholeMilliseconds) / 1000),
        ])
    }
}
