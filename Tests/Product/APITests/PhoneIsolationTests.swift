import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing

@testable import API

/// The isolation of phones. For every route that takes a challenge, unknown challenges and those of another user or
/// website get the same answer, to the byte, with the same store statements.
struct PhoneIsolationTests {
    private let statements = Statements()

    /// An answer, and the statements that it needed.
    private struct Seen: Equatable {
        let response: Response
        let statements: [String]
    }

    /// A phone of a website's user, and the user's open challenge.
    private struct Asked {
        let site: Site
        let phone: TestPhone
        let credential: PhoneCredential
        let challenge: ChallengeID
    }

    private func ask(_ rig: APIRig, _ username: String, at website: Website) async throws -> Asked {
        let (user, phone, credential) = try await rig.relay.enrolled(username, at: website)
        let number = website.policy.answers == .website ? nil : "47"
        let asked = try await rig.relay.on { relay in
            try await relay.login(
                LoginRequest(subject: .token(user), request: "r-1", number: number), by: website,
                as: relay.operations.new())
        }
        return Asked(
            site: Site(rig: rig, certificate: phone.certificate(device: credential.id)), phone: phone,
            credential: credential, challenge: asked.challenge)
    }

    private func see(_ asked: Asked, _ path: String, _ body: JSONObject, wait: Int? = nil) async -> Seen {
        await asked.site.rig.relay.settled()
        _ = statements.take()
        let fields = wait.map { [("prefer", "wait=\($0)")] } ?? []
        let response = await asked.site.send("POST", path, body, fields: fields)
        return Seen(response: response.withoutID, statements: statements.take())
    }

    @Test(arguments: ["signed", "certificate", "website"]) func foreignChallengeReadsAsNotFoundForAPhone(
        answers: String
    ) async throws {
        let rig = try await APIRig(noting: statements)
        let policies = ["answers": answers]
        let shop = try await rig.relay.website("shop", policies: policies)
        let bank = try await rig.relay.website("bank", policies: policies)
        let bob = try await ask(rig, "bob", at: shop)
        let others = [try await ask(rig, "ann", at: shop), try await ask(rig, "bob", at: bank)]
        let nothing = try #require(ChallengeID([UInt8](repeating: 0, count: 16)))
        let ids = [nothing] + others.map(\.challenge)
        // Decisions that the other phones signed, or will sign. None of them reveals to this phone that the
        // challenge exists.
        var bodies: [JSONObject] = [[:], ["number": "47"], ["answer": "eyJ.eyJ.AAAA"]]
        for signer in [bob] + others {
            let signed = try await rig.relay.signed(
                .approve, signer.challenge, number: "47", by: (signer.phone, signer.credential))
            bodies.append(["answer": .string(signed)])
        }
        var visited: Set<String> = []
        // Another user's challenge neither holds the request nor ends the wait.
        _ = await see(bob, "/pending", [:])
        for wait in [nil, 30] {
            var seen: [Seen] = []
            for id in ids { seen.append(await see(bob, "/pending", ["known": [.string(id.text)]], wait: wait)) }
            #expect(seen[0].response.status == 200 && seen[0].statements.count >= 2)
            for other in seen.dropFirst() { #expect(other == seen[0], "/pending") }
        }
        visited.insert("/pending")
        // The first audit row of a process also registers its key.
        _ = await see(bob, "/success", ["challenge": .string(nothing.text)])
        for path in ["/success", "/failure"] {
            for body in bodies {
                var seen: [Seen] = []
                for id in ids {
                    var body = body
                    body.set("challenge", .string(id.text))
                    // A day later the audit counts them as new.
                    rig.relay.time.advance(by: .seconds(86_400))
                    seen.append(await see(bob, path, body))
                    seen.append(await see(bob, path, body))
                }
                #expect(seen[0].response.status == 404, "\(path): \(seen[0].response.text)")
                #expect(seen[0].statements.count > seen[1].statements.count && seen[1].statements.count >= 3)
                for (place, other) in seen.enumerated() { #expect(other == seen[place % 2], "\(path)") }
            }
            visited.insert(path)
        }
        for route in API.table.routes {
            for form in route.forms {
                guard case .phone = form.action else { continue }
                let names = form.parameters.map(\.name)
                guard names.contains("challenge") || names.contains("known") || route.path.text.contains("{challenge}")
                else { continue }
                #expect(visited.contains(route.path.text), "\(route.path.text) is not looked at")
            }
        }
        // The other users' data is unchanged, and the audit names none of it.
        let waiting = try rig.relay.count("SELECT count(*) FROM challenge WHERE decided_at IS NULL")
        #expect(waiting == 3)
        let refused = "SELECT count(*) FROM audit WHERE event = 'decision.refused'"
        // With the first one, before the days.
        let days = Int64(2 * bodies.count * ids.count) + 1
        #expect(try rig.relay.count(refused) == days)
        #expect(try rig.relay.count(refused + " AND challenge_id IS NULL AND outcome = 'unknown'") == days)
    }
}
