import Testing

@testable import Storage

struct DistinctStepsTests {
    private static let one = Statement("SELECT n FROM counter WHERE id = :id")
    private static let other = Statement("SELECT n FROM counter WHERE id = :id")

    @Test func sameReadsRunOnceAndShareTheirResult() {
        let steps = DistinctSteps([
            Self.one(id: .integer(1)), Self.one(id: .integer(2)), Self.one(id: .integer(1)), Self.one(id: .text("1")),
        ])
        #expect(steps.distinct.map(\.values) == [[.integer(1)], [.integer(2)], [.text("1")]])
        let rows = [10, 20, 30].map { Rows(changes: $0) }
        #expect(steps.answers(rows[...]).map(\.changes) == [10, 20, 10, 30])
        // The results may follow others.
        #expect(steps.answers(([Rows(changes: 5)] + rows).dropFirst()).map(\.changes) == [10, 20, 10, 30])
    }

    @Test func differentStatementsAreDifferentReads() {
        let steps = DistinctSteps([Self.one(id: .null), Self.other(id: .null), Self.one(id: .null)])
        #expect(steps.distinct.count == 2)
        #expect(steps.answers([Rows(changes: 1), Rows(changes: 2)]).map(\.changes) == [1, 2, 1])
    }

    /// The databases compare bytes, so these are two users, and Swift's strings are equal.
    @Test(arguments: [("\u{212A}ate", "Kate"), ("jos\u{E9}", "jose\u{301}")])
    func namesOfEqualCharactersAndOtherBytesAreDifferentReads(_ a: String, _ b: String) {
        #expect(a == b)
        #expect(SQLValue.text(a) != .text(b) && Set([SQLValue.text(a), .text(b)]).count == 2)
        #expect(DistinctSteps([Self.one(id: .text(a)), Self.one(id: .text(b))]).distinct.count == 2)
        let names = [a, b].map { PersonalValue.Content.text(.address, $0) }
        #expect(names[0] != names[1] && Set(names).count == 2)
    }

    @Test func nothingIsReadForNobody() {
        #expect(DistinctSteps([]).distinct.isEmpty)
        #expect(DistinctSteps([]).answers([]).isEmpty)
    }
}
