import Domain
import GSM
import World

@testable import Relay
@testable import Storage

extension Sample {
    /// Sends codes and notices, with success or failure; an operator handles dead letters.
    static func runMessages(on store: Store, _ operation: () -> Domain.Operation) async throws {
        for number in 40...44 {
            let code = CodeToSend(
                id: id(number + 5000), factor: id(number), counter: 0, challenge: id(number), language: nil, at: now,
                expiresAt: later, holder: relay, leasedUntil: later)
            let operation = operation()
            // The refused decision stands for any change in the audit.
            let noted = RefusedDecision(
                fault: .late, website: website, user: id(number), device: id(number), challenge: id(number), at: now)
            try await store.recordRefusal(noted, as: operation)
            _ = try await store.run(Script("code", writes: CodeEntries.insert(code, as: operation)))
        }
        let ends: [(StepState, Bool)] = [(.sent, false), (.refused, false), (.refused, true), (.refused, true)]
        for (number, end) in zip(40..., ends) {
            guard let row = try await store.message(id(number + 5000), of: relay) else { continue }
            let settlement = MessageSettlement(of: row, end.0, nil, isDead: end.1, at: now)
            _ = try await store.settle(settlement, as: operation())
        }
        let pause = MessageRetry(id(5044), until: later, reason: "busy", ambiguousAt: nil)
        _ = try await store.postpone(pause, by: relay)
        _ = try await store.backlog(at: now)
        _ = try await store.run(OutboxAdmin.list(OutboxAdmin.Filter()))
        _ = try await store.run(OutboxAdmin.dead(after: id(1)))
        _ = try await store.run(OutboxAdmin.row(id(5042)))
        _ = try await store.run(OutboxAdmin.replay(id(5042), at: now, as: operation()))
        _ = try await store.run(OutboxAdmin.drop(id(5043), at: now, as: operation()))
    }

    static func runAddresses(on store: Store, _ operation: () -> Domain.Operation) async throws {
        func factor(_ number: Int, _ kind: Factor, _ address: String) -> NewFactor {
            NewFactor(
                id: id(number), user: id(54), kind: kind, state: .waiting,
                sealed: SealedSecret(bytes: [1], key: "1"), address: address,
                approvedBy: Approved(challenge: id(54), digest: key(54)), at: now)
        }
        let addresses = [factor(10_054, .mail, "new@example.com"), factor(10_055, .sms, "+4366012345678")]
        var change = UserChange()
        for (removed, added) in [(false, addresses), (true, [])] {
            if removed { change.addresses.updateValue(nil, forKey: .mail) }
            let writing = UserUpdate(
                user: id(54), website: website, change: change, addresses: added, isVouchedFor: true, at: now)
            _ = try await store.change(writing, as: operation())
        }
        for new in addresses {
            let waiting = CodeFactor(
                id: new.id, kind: new.kind, state: .waiting, secret: [1], algorithm: .sha1, digits: 6, period: nil,
                counter: 0, address: new.address, failures: 0, failedAt: nil, createdAt: now, confirmedAt: nil)
            let code = CodeToSend(
                id: id(10_056), factor: new.id, counter: 0, challenge: nil, language: nil, at: now, expiresAt: later,
                holder: relay, leasedUntil: later)
            let charge = SMSLimits().charge(user: id(54), to: "+4366012345678", at: now)
            _ = try await store.send(
                AddressCode(user: id(54), code: code, charge: new.kind == .sms ? charge : nil, since: now),
                as: operation())
            _ = try await store.sentCodes(of: new.id, at: now)
            _ = try await store.confirm(
                address: waiting, of: id(54), failures: 0, code: 0, isVouchedFor: true, at: now, as: operation())
        }
    }
}
