import Bytes
import Domain
import EventLoop
import Relay
import Synchronization
import TestSupport
import Testing
import World

@testable import Storage

/// Short reads of a SQLite file on the loops of their requests.
@Suite(.mayBlock) struct LoopReadersTests {
    @Test func shortReadsRunOnTheirLoopAndSeeWhatWasCommitted() async throws {
        let fixture = try await Fixture()
        defer { fixture.close() }
        for (number, loop) in fixture.group.loops.enumerated() {
            #expect(try await fixture.name(of: 7, on: loop) == "Sample \(number)")
            _ = try await fixture.run(Self.renaming(to: "Sample \(number + 1)"), on: loop)
        }
        #expect(fixture.store.loopReads == fixture.group.loops.count)
        // A caller without one of the loops.
        let rows = try fixture.store.runBlocking(Self.reading(7))
        #expect(try rows[0][0].text("display_name") == "Sample \(fixture.group.loops.count)")
        #expect(fixture.store.loopReads == fixture.group.loops.count)
    }

    /// None of the reads of a login is left to the lane.
    @Test func readsOfALoginRunOnTheLoop() async throws {
        let fixture = try await Fixture()
        defer { fixture.close() }
        let (store, loop, now) = (fixture.store, fixture.group.loops[0], Sample.now)
        let user: UserID = Sample.id(7)
        let limits = AskLimits(since: now, logins: 10, pushes: 10)
        let website: WebsiteID = try store.runBlocking(Script("test", reads: [anyWebsite()]))[0][0].id("id")
        let reads: [@Sendable () async -> Void] = [
            { _ = try? await store.website(named: "shop", key: Sample.key(7), at: now) },
            { _ = try? await store.device(key: Sample.key(7)) },
            { _ = try? await store.device(Sample.id(7), key: Sample.key(7)) },
            { _ = try? await store.subject(.username("user-7"), of: website, within: limits, key: nil) },
            { _ = try? await store.pending(of: user, at: now) },
            { _ = try? await store.challenge(Sample.id(8), of: website) },
            { _ = try? await store.challenge(Sample.id(8), of: user) },
        ]
        for (number, read) in reads.enumerated() {
            await loop.perform(read)
            #expect(store.loopReads == number + 1, "\(number)")
        }
    }

    /// The steps of a script count anew each time, also if its statements take equally many.
    @Test func shortReadsAreNeverInterrupted() async throws {
        let fixture = try await Fixture()
        defer { fixture.close() }
        let (_, loop, readers) = try fixture.readers(limit: Fixture.noLimit)
        defer { readers.close() }
        let five = Script("test", reads: (0..<5).map { _ in count(most: .integer(20)) })
        for _ in 0..<2000 { _ = readers.read(five, on: loop, fixture.keys) }
        #expect(readers.count == 2000)
    }

    @Test func longReadIsLeftToTheLane() async throws {
        let fixture = try await Fixture()
        defer { fixture.close() }
        let loop = fixture.group.loops[0]
        for _ in 0..<2 {
            let rows = try await fixture.run(Self.counting(20_000), on: loop)
            #expect(try rows[0][0].integer("amount") == 20_000)
            #expect(fixture.store.loopReads == 0)
        }
        #expect(try await fixture.name(of: 7, on: loop) == "Sample 0")
        #expect(fixture.store.loopReads == 1)
    }

    @Test func rowThatIsNotGenuineIsRefused() async throws {
        let fixture = try await Fixture()
        defer { fixture.close() }
        let loop = fixture.group.loops[0]
        _ = try await fixture.run(Script("forge", writes: [rename(name: .text("Eve"))]), on: loop)
        await #expect(throws: StoreFailure.self) { _ = try await fixture.name(of: 7, on: loop) }
        let relying = Script(
            "relying", rows: [SignedRows.user(Sample.id(7) as UserID)],
            reads: [plain(user: .id(Sample.id(7) as UserID))])
        await #expect(throws: StoreFailure.self) { _ = try await fixture.run(relying, on: loop) }
        #expect(fixture.store.loopReads == 0)
        #expect(try await fixture.name(of: 8, on: loop) == "Sample 0")
        #expect(fixture.store.loopReads == 1)
    }

    @Test func closedStoreReadsNothing() async throws {
        let fixture = try await Fixture()
        defer { fixture.group.stopAndJoin() }
        let loop = fixture.group.loops[0]
        fixture.store.close()
        await #expect(throws: StoreFailure.self) { _ = try await fixture.name(of: 7, on: loop) }
    }

    /// A statement that was interrupted runs in the lane for a minute; others do not.
    @Test func interruptedStatementHasAPause() async throws {
        let fixture = try await Fixture()
        defer { fixture.close() }
        let (time, loop, readers) = try fixture.readers(limit: Fixture.noLimit)
        defer { readers.close() }
        #expect(readers.read(Self.counting(20_000), on: loop, fixture.keys) == nil)
        #expect(readers.read(Self.reading(7), on: loop, fixture.keys) != nil)
        #expect(readers.read(Self.counting(20_000), on: loop, fixture.keys) == nil)
        #expect(readers.read(Self.counting(2), on: loop, fixture.keys) == nil)
        time.advance(by: LoopReaders.longPause)
        #expect(readers.read(Self.counting(2), on: loop, fixture.keys) != nil)
    }

    /// A script beyond the time is interrupted at its first hundred steps, and its statements are not
    /// called long.
    @Test func scriptIsInterruptedAfterATime() async throws {
        let fixture = try await Fixture()
        defer { fixture.close() }
        let (_, loop, impatient) = try fixture.readers(limit: .milliseconds(-1))
        defer { impatient.close() }
        #expect(impatient.read(Self.counting(100), on: loop, fixture.keys) == nil)
        #expect(impatient.read(Self.counting(1), on: loop, fixture.keys) != nil)
        #expect(impatient.read(Self.counting(100), on: loop, fixture.keys) == nil)
    }

    /// If a read waits for the disk, the loop reads nothing for a second.
    @Test func slowFileIsLeftToTheLane() async throws {
        let fixture = try await Fixture()
        defer { fixture.close() }
        let time = SlowTime()
        let disk = Mutex((blocks: 0, isRead: false))
        let loop = EventLoop.simulated(name: "loop", time: time) { _ in 0 }
        let readers = try LoopReaders([loop], at: try fixture.path, time: time, limit: Fixture.noLimit) {
            disk.withLock { disk in
                if disk.isRead { disk.blocks += 8 }
                return disk.blocks
            }
        }
        defer { readers.close() }
        #expect(readers.read(Self.reading(7), on: loop, fixture.keys) != nil)
        // The reader's thread waited for the processor, or the disk is fast.
        time.isSlow.withLock { $0 = true }
        #expect(readers.read(Self.reading(7), on: loop, fixture.keys) != nil)
        time.isSlow.withLock { $0 = false }
        disk.withLock { $0.isRead = true }
        #expect(readers.read(Self.reading(7), on: loop, fixture.keys) != nil)
        time.isSlow.withLock { $0 = true }
        #expect(readers.read(Self.reading(7), on: loop, fixture.keys) != nil)
        time.isSlow.withLock { $0 = false }
        #expect(readers.read(Self.reading(7), on: loop, fixture.keys) == nil)
        time.passed.withLock { $0 += LoopReaders.pause }
        #expect(readers.read(Self.reading(7), on: loop, fixture.keys) != nil)
    }

    fileprivate static func reading(_ number: Int) -> Script {
        Script("test", reads: [checked(name: .text("user-\(number)"))])
    }

    private static func renaming(to name: String) -> Script {
        Script("rename", rows: [SignedRows.user(Sample.id(7) as UserID).signed], writes: [rename(name: .text(name))])
    }

    private static func counting(_ most: Int64) -> Script { Script("count", reads: [count(most: .integer(most))]) }
}

private let checked = Statement(
    checking: [CheckedTable(.user, as: "u")], from: "\(SignedTable.user.checked(as: "u")) WHERE u.username = :name")
private let plain = Statement("SELECT username FROM user WHERE id = :user")
private let anyWebsite = Statement("SELECT id FROM website ORDER BY id LIMIT 1")
private let rename = Statement("UPDATE user SET display_name = :name WHERE username = 'user-7'")
private let count = Statement(
    """
    WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :most)
    SELECT count(*) AS amount FROM number
    """)

/// A store on a file with signed rows, whose users are all called "Sample 0".
private struct Fixture {
    /// A busy machine may take the processor away for any time.
    static let noLimit = Duration.seconds(3600)

    let database: TestDatabase
    let store: Store
    let group: LoopGroup
    let keys: RowAuthenticator

    init() async throws {
        database = try Engine.file.database(Migration.all)
        keys = try RowAuthenticator(keys: [RowAuthenticator.Key(id: "1", secret: Secret(utf8: "secret"))])
        var options = StoreOptions.patient
        options.rows = keys
        // The clock stands still, so that reads on a busy machine do not seem slow.
        store = try database.open(time: TestTime(), options: options)
        try await Sample.fill(store, at: database.url)
        _ = try await store.run(Script("rename", writes: [Statement("UPDATE user SET display_name = 'Sample 0'")()]))
        _ = try await store.run(Script("adopt", rows: SignedRows.everythingAdopted))
        group = try LoopGroup.start(count: 2, time: SystemTime())
        try store.read(on: group.loops, within: Fixture.noLimit)
    }

    var path: String {
        get throws {
            guard case .sqlite(let path) = database.url else { throw Failure.noFile }
            return path
        }
    }

    /// Makes readers for a simulated loop, with a clock that the test moves.
    func readers(limit: Duration) throws -> (time: TestTime, loop: EventLoop, readers: LoopReaders) {
        let time = TestTime()
        let loop = EventLoop.simulated(name: "loop", time: time) { _ in 0 }
        return (time, loop, try LoopReaders([loop], at: try path, time: time, limit: limit))
    }

    func run(_ script: Script, on loop: EventLoop) async throws -> [Rows] {
        try await loop.perform { () -> ScriptResult in
            do throws(StoreFailure) {
                return .success(try await store.run(script))
            } catch {
                return .failure(error)
            }
        }.get()
    }

    func name(of number: Int, on loop: EventLoop) async throws -> String {
        try await run(LoopReadersTests.reading(number), on: loop)[0][0].text("display_name")
    }

    func close() {
        store.close()
        group.stopAndJoin()
    }

    private enum Failure: Error { case noFile }
}

/// A clock that may advance by more than a read from memory takes, each time it is asked.
private final class SlowTime: TimeSource {
    let passed = Mutex(Duration.zero)
    let isSlow = Mutex(false)

    func now() -> Timestamp { Timestamp(seconds: 1_800_000_000) + passed.withLock { $0 } }

    func instant() -> Instant {
        let isSlow = isSlow.withLock { $0 }
        return Instant(nanoseconds: 1)
            + passed.withLock { passed in
                if isSlow { passed += LoopReaders.patience + .milliseconds(1) }
                return passed
            }
    }
}
