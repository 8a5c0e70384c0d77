import Testing
import World

@testable import Domain

private let start = Timestamp(seconds: 1_700_000_000)
private let end = start + .seconds(300)
private let open = ChallengeLife(expiresAt: end)

private func ended(
    _ state: ChallengeLife.State, _ decision: Decision? = nil, _ reason: Reason? = nil
) -> ChallengeLife {
    ChallengeLife(state: state, decision: decision, reason: reason, expiresAt: end)
}

@Suite struct ChallengeLifeTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let event: ChallengeLife.Event
        let life: ChallengeLife
        let result: ChallengeLife.Result

        var testDescription: String { "\(event)" }
    }

    static let ends: [Row] = [
        Row(event: .answer(.approve, numberMatches: true), life: ended(.answered, .approve), result: .success),
        Row(event: .answer(.deny, numberMatches: true), life: ended(.answered, .deny, .denied), result: .failure),
        Row(event: .answer(.fraud, numberMatches: true), life: ended(.answered, .fraud, .fraud), result: .failure),
        Row(event: .answer(.approve, numberMatches: false), life: ended(.failed, nil, .wrongNumber), result: .failure),
        Row(event: .refusePlace, life: ended(.failed, nil, .place), result: .failure),
        Row(event: .cancel, life: ended(.cancelled, nil, .cancelled), result: .failure),
        Row(event: .supersede, life: ended(.cancelled, nil, .superseded), result: .failure),
        Row(event: .giveUp(.undeliverable), life: ended(.failed, nil, .undeliverable), result: .failure),
    ]

    @Test(arguments: ends) func openChallengeFollowsTheTransitionTable(row: Row) throws {
        let sent = try open.after(.delivered, at: start)
        #expect(sent.state == .sent && sent.result == .wait)
        for before in [open, sent] {
            let life = try before.after(row.event, at: start + .seconds(1))
            #expect(life == row.life)
            #expect(life.result == row.result)
        }
    }

    @Test(arguments: ends) func endedChallengeNeverChanges(row: Row) throws {
        let over = try open.after(row.event, at: start)
        for other in Self.ends.map(\.event) + [.delivered, .expire] {
            for moment in [start, end, end + .seconds(1)] {
                #expect(throws: ChallengeLife.Refusal.alreadyDecided) { try over.after(other, at: moment) }
            }
        }
        #expect(over.seen(at: end + .seconds(1)) == over)
    }

    @Test(arguments: ends) func expiredChallengeOnlyExpires(row: Row) {
        #expect(throws: ChallengeLife.Refusal.expired) { try open.after(row.event, at: end) }
    }

    @Test func challengeExpiresExactlyAtItsExpiry() throws {
        #expect(throws: ChallengeLife.Refusal.tooEarly) { try open.after(.expire, at: end - .milliseconds(1)) }
        #expect(try open.after(.expire, at: end) == ended(.expired, nil, .expired))
        #expect(open.seen(at: end - .milliseconds(1)) == open)
        #expect(open.seen(at: end).result == .failure)
    }
}
