import Crypto
import Synchronization
import TestSupport
import Testing
import TwoefayClient

/// The rules of a store, in memory and in a database.
@Suite("Stores of websites", .timeLimit(.minutes(5)), .mayBlock) struct StoreTests {
    enum Kind: CaseIterable {
        case memory, sql
    }

    private static let now: Int64 = 1_795_334_400
    private static let day: Int64 = 86_400
    private static let k = [UInt8](repeating: 1, count: 32)
    private static let otherK = [UInt8](repeating: 2, count: 32)

    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func store(_ kind: Kind) async throws -> any Store {
        switch kind {
        case .memory: return MemoryStore()
        case .sql:
            let store = SQLStore(SQLiteDatabase(path: directory("shop.db")), .sqlite)
            try await store.createTables()
            try await store.createTables()
            return store
        }
    }

    private func phone(_ device: String) throws -> PinnedPhone {
        PinnedPhone(device: device, key: try P256PrivateKey.generate().publicKey)
    }

    private func pin(_ device: String, of username: String, in store: any Store) async throws {
        try await store.addSecret(Self.k, of: username, at: Self.now)
        #expect(try await store.pin(try phone(device), of: username, with: Self.k))
    }

    /// Runs the same work several times at once, and returns how often it was true.
    private func count(_ works: [@Sendable () async throws -> Bool]) async throws -> Int {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for work in works { group.addTask { try await work() } }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
    }

    // MARK: Phones

    @Test(arguments: Kind.allCases) func keyIsPinnedOnceAndNeverReplaced(kind: Kind) async throws {
        let store = try await store(kind)
        let first = try phone("d1")
        #expect(try await !store.pin(first, of: "ada", with: Self.k))
        try await store.addSecret(Self.k, of: "ada", at: Self.now)
        try await store.addSecret(Self.otherK, of: "ada", at: Self.now)
        #expect(try await store.pin(first, of: "ada", with: Self.k))
        // A pin deletes every k of the user.
        #expect(try await store.secrets(of: "ada", at: Self.now) == [])
        #expect(try await !store.pin(try phone("d2"), of: "ada", with: Self.otherK))
        try await store.addSecret(Self.k, of: "ada", at: Self.now)
        #expect(try await !store.pin(try phone("d1"), of: "ada", with: Self.k))
        #expect(try await store.secrets(of: "ada", at: Self.now) == [Self.k])
        #expect(try await store.pins(of: "ada") == [first])
        #expect(try await store.wasPinned("ada"))
        #expect(try await !store.wasPinned("bob"))
    }

    /// Each of the phones has another k, and the two of a pair have the same id.
    @Test(arguments: Kind.allCases) func onlyOneOfSeveralPinsAtOnce(kind: Kind) async throws {
        let store = try await store(kind)
        for round in 0..<10 {
            let user = "user\(round)"
            var works: [@Sendable () async throws -> Bool] = []
            for index in 0..<6 {
                let (phone, k) = (try phone("d\(index / 2)"), [UInt8](repeating: UInt8(index), count: 32))
                try await store.addSecret(k, of: user, at: Self.now)
                works.append { try await store.pin(phone, of: user, with: k) }
            }
            #expect(try await count(works) == 1)
            #expect(try await store.pins(of: user).count == 1)
        }
    }

    @Test(arguments: Kind.allCases) func unpinnedPhoneStaysRevokedForEver(kind: Kind) async throws {
        let store = try await store(kind)
        try await pin("d1", of: "ada", in: store)
        try await store.addSecret(Self.k, of: "ada", at: Self.now)
        try await store.unpin("d1", of: "ada")
        #expect(try await store.pins(of: "ada") == [])
        #expect(try await store.wasPinned("ada"))
        // The phone may have read this code without being pinned yet.
        #expect(try await store.secrets(of: "ada", at: Self.now) == [])
        // The relay's webhook about the same phone may come after a new code.
        try await store.addUser("ada", token: "t1")
        try await store.addSecret(Self.k, of: "ada", at: Self.now)
        try await store.unpin("d1", ofToken: "t1")
        #expect(try await store.secrets(of: "ada", at: Self.now) == [Self.k])
        #expect(try await !store.pin(try phone("d1"), of: "ada", with: Self.k))
        // A phone that was never pinned may have read the code, too.
        try await store.unpin("d9", ofToken: "t1")
        #expect(try await store.secrets(of: "ada", at: Self.now) == [])
        try await store.unpin("d1", ofToken: "t9")
    }

    @Test(arguments: Kind.allCases) func forgottenUserHadNoPhone(kind: Kind) async throws {
        let store = try await store(kind)
        try await pin("d1", of: "ada", in: store)
        try await pin("d1", of: "bob", in: store)
        try await store.addUser("ada", token: "t1")
        try await store.forget("ada")
        #expect(try await !store.wasPinned("ada"))
        #expect(try await store.token(of: "ada") == nil)
        #expect(try await store.wasPinned("bob"))
        try await pin("d1", of: "ada", in: store)
    }

    @Test(arguments: Kind.allCases) func namesAreComparedByteByByte(kind: Kind) async throws {
        let store = try await store(kind)
        let names = ["ada", "Ada", "ada ", "caf\u{e9}", "cafe\u{301}", "ada\0"]
        for (index, name) in names.enumerated() {
            #expect(try await store.token(of: name) == nil)
            try await store.addUser(name, token: "t\(index)")
            try await pin("d\(index)", of: name, in: store)
        }
        for (index, name) in names.enumerated() {
            #expect(try await store.token(of: name) == "t\(index)")
            #expect(try await store.pins(of: name).map(\.device) == ["d\(index)"])
        }
    }

    @Test(arguments: Kind.allCases) func secretCountsForADay(kind: Kind) async throws {
        let store = try await store(kind)
        try await store.addSecret(Self.k, of: "ada", at: Self.now)
        #expect(try await store.secrets(of: "ada", at: Self.now + Self.day - 1) == [Self.k])
        #expect(try await store.secrets(of: "ada", at: Self.now + Self.day) == [])
    }

    @Test(arguments: Kind.allCases) func laterTokenReplacesTheEarlier(kind: Kind) async throws {
        let store = try await store(kind)
        let works: [@Sendable () async throws -> Bool] = (0..<8).map { _ in
            {
                try await store.addUser("ada", token: "t1")
                return true
            }
        }
        #expect(try await count(works) == works.count)
        try await store.addUser("ada", token: "t2")
        #expect(try await store.token(of: "ada") == "t2")
    }

    // MARK: Requests and events

    @Test(arguments: Kind.allCases) func requestIsSpentOnce(kind: Kind) async throws {
        let store = try await store(kind)
        #expect(try await !store.spend("r0"))
        for round in 0..<10 {
            try await store.open("r\(round)", at: Self.now)
            let works = [@Sendable () async throws -> Bool](repeating: { try await store.spend("r\(round)") }, count: 6)
            #expect(try await count(works) == 1)
        }
    }

    @Test(arguments: Kind.allCases) func oldRequestsAndEventsAreForgotten(kind: Kind) async throws {
        let store = try await store(kind)
        try await store.open("old", at: Self.now)
        try await store.open("young", at: Self.now + Self.day)
        try await store.open("new", at: Self.now + Self.day + 1)
        #expect(try await !store.spend("old"))
        #expect(try await store.spend("young"))
        #expect(try await store.spend("new"))
        try await store.see("e1", at: Self.now)
        try await store.see("e1", at: Self.now)
        #expect(try await store.hasSeen("e1"))
        #expect(try await !store.hasSeen("e2"))
        try await store.see("e2", at: Self.now + 30 * Self.day + 1)
        #expect(try await !store.hasSeen("e1"))
        #expect(try await store.hasSeen("e2"))
    }

    // MARK: Dialects

    /// A database that records statements, and finds nothing.
    private final class RecordingDatabase: StoreDatabase {
        let statements = Mutex<[String]>([])
        private let failures: Mutex<Int>

        init(failures: Int = 0) { self.failures = Mutex(failures) }

        func transaction<Value: Sendable>(
            _ work: @escaping @concurrent @Sendable (_ execute: @escaping StoreExecute) async throws -> Value
        ) async throws -> Value {
            let value = try await work { statement, values in
                self.statements.withLock { $0.append("\(statement) \(values.count)") }
                return []
            }
            let fails = failures.withLock { failures in
                failures -= 1
                return failures >= 0
            }
            if fails { throw SQLiteDatabase.Failure(description: "serialisation") }
            return value
        }
    }

    @Test func valuesAreMarkedAsTheDatabaseExpects() async throws {
        for (dialect, mark) in [(SQLStore.Dialect.postgreSQL, "$1, $2"), (.mysql, "?, ?"), (.sqlite, "?, ?")] {
            let database = RecordingDatabase()
            try await SQLStore(database, dialect).addUser("ada", token: "t1")
            let statements = database.statements.withLock { $0 }
            #expect(statements.last == "INSERT INTO twoefay_user (name, token) VALUES (\(mark)) 2")
        }
    }

    @Test func failedTransactionRunsOnceMore() async throws {
        let database = RecordingDatabase(failures: 1)
        #expect(try await !SQLStore(database, .mysql).spend("r1"))
        #expect(database.statements.withLock { $0.count } == 6)
        await #expect(throws: SQLiteDatabase.Failure.self) {
            try await SQLStore(RecordingDatabase(failures: 2), .mysql).spend("r1")
        }
    }
}
