import Bytes
import Domain
import EventLoop
import Measuring
import Relay
import Storage
import Synchronization
import World

/// Measures correct codes of apps, submitted one after the other and 64 at once. In turn with them,
/// it measures the smallest change that the same store commits, with as many at once.
func verify(_ url: String, on loop: EventLoop, rounds: Int, count: Int) async throws {
    let rig = try await Rig(url, on: loop)
    defer { rig.store.close() }
    let engine = url.prefix { $0 != ":" }
    var ratios: (alone: [Double], together: [Double], grouped: [Double]) = ([], [], [])
    for round in 1...rounds {
        let numbers = (round - 1) * count..<round * count
        let check = try await asked(numbers, rig)
        let alone = try await inTurn(numbers.prefix(count / 10), atOnce: 1, rig, check)
        let together = try await inTurn(numbers.dropFirst(count / 10), atOnce: 64, rig, check)
        ratios.alone.append(alone.codes / alone.commits)
        ratios.together.append(together.codes / alone.commits)
        ratios.grouped.append(together.codes / together.commits)
        print(
            "\(engine) round \(round): one at a time \(whole(alone.codes)) codes/s and \(whole(alone.commits)) commits/s, "
                + "64 at once \(whole(together.codes)) codes/s and \(whole(together.commits)) rows/s")
    }
    print(
        "\(engine) median: codes verified to single commits \(hundredths(median(ratios.alone))) one at a time, "
            + "\(hundredths(median(ratios.together))) with 64 at once; to rows written 64 at once "
            + "\(hundredths(median(ratios.grouped)))")
}

/// Measures slices of codes and commits in turn, so that both have the same conditions. Returns the
/// rates per second.
private func inTurn(
    _ numbers: Range<Int>, atOnce width: Int, _ rig: Rig, _ check: @escaping @Sendable (Int) async throws -> Void
) async throws -> (codes: Double, commits: Double) {
    let slices = 10
    var (codes, commits) = (0.0, 0.0)
    for slice in 0..<slices {
        let part =
            numbers.lowerBound + numbers.count * slice / slices..<numbers.lowerBound + numbers.count * (slice + 1)
            / slices
        codes += try await rig.time(part, atOnce: width, check)
        commits += try await rig.time(part, atOnce: width) { _ in try await commit(rig.store) }
    }
    return (Double(numbers.count) / codes, Double(numbers.count) / commits)
}

/// Starts a login of a user with an app for each number. Returns a function that submits a user's
/// code.
private func asked(_ numbers: Range<Int>, _ rig: Rig) async throws -> @Sendable (Int) async throws -> Void {
    let secrets = numbers.map { _ in Secret(SystemRandomness().bytes(20)) }
    let challenges = Mutex<[Int: ChallengeID]>([:])
    try await rig.time(numbers, atOnce: 64) { number in
        try await rig.bindTOTP(try await rig.register(number), secrets[number - numbers.lowerBound])
        let challenge = try await rig.ask(number)
        challenges.withLock { $0[number] = challenge }
    }
    let asked = challenges.withLock { $0 }
    return { number in
        guard let challenge = asked[number] else { throw Unmeasured("no challenge") }
        try await rig.handIn(secrets[number - numbers.lowerBound], of: challenge)
    }
}

extension Rig {
    /// Submits the current code.
    func handIn(_ secret: Secret, of challenge: ChallengeID) async throws {
        let step = OTP.step(at: SystemTime().now(), period: 30)
        let code = OTP.code(secret: secret, counter: UInt64(step), algorithm: .sha1, digits: 6)
        let told = try await relay.backup(challenge, of: nil, code: code, by: website, as: relay.operations.new())
        guard told.result == .success else { throw Unmeasured("a right code was refused") }
    }
}

/// Writes one row with a commit that survives a crash.
private func commit(_ store: Store) async throws {
    _ = try await store.run(
        Script(
            "commit",
            writes: [smallest(operation: .blob(SystemRandomness().bytes(16)), now: .timestamp(SystemTime().now()))]))
}

private let smallest = Statement("INSERT INTO audit (operation, at, event) VALUES (:operation, :now, 'benchmark')")
