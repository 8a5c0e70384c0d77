import Bytes
import Crypto
import Domain
import JSON
import Relay
import World

/// Notify: `/pending`, which answers at once or holds the request until the pending challenges
/// differ from those that the phone knows.
enum PendingList {
    typealias P = Parameters

    static let routes = [
        Route(
            "listPending", "POST", "/pending",
            "Returns the pending challenges; with `Prefer: wait=N` it waits until they differ from `known`",
            Form(
                .phone(pending), [P.known.optional, P.pins.optional, P.pinsSequence.optional],
                answers: [Answer(200, "The pending challenges", .pendingList)]))
    ]

    @Sendable static func pending(_ call: VerbCall, _ phone: PhoneCredential) async throws(Refusal) -> VerbOutcome {
        let texts = call[P.known] ?? []
        let pins = (call[P.pins] ?? []).compactMap { Base64URL.decode($0) }
        // The statement comes with whatever answer is next. A held request does not end for it.
        let stated =
            pins.isEmpty
            ? nil : call.relay.statedPins(for: phone, holding: pins, last: Int64(call[P.pinsSequence] ?? 0))?.text
        let poll = Poll(api: call.api, texts: texts, stated: stated, patience: call.waitLimit)
        guard let patience = call.waitLimit, patience > 0 else { return .answer(try await poll.answer(to: phone)) }
        return try await poll.news(for: phone, until: call.api.time.instant() + .seconds(patience))
    }

    /// The question of a phone: all that a held request keeps of it.
    private struct Poll {
        let api: API
        /// The challenges that the phone knows, as it wrote them.
        let texts: [String]
        /// The statement about the pins for the answer.
        let stated: String?
        let patience: Int?

        private var relay: Relay { api.relay }

        func news(
            for phone: PhoneCredential, until end: Instant, again: Bool = false
        ) async throws(Refusal) -> VerbOutcome {
            // A text that is no id cannot be pending.
            let known = Set(texts.compactMap { ChallengeID($0) })
            // The ticket is taken before the read, so that a login between the two is not missed.
            let taken =
                again
                ? relay.ticketAgain(for: phone, knowing: Array(known))
                : relay.ticket(for: phone, knowing: Array(known))
            guard let ticket = taken else { return .answer(try await answer(to: phone)) }
            let pending: [Pending]
            do throws(Refusal) {
                pending = try await relay.pending(for: phone)
            } catch {
                ticket.cancel()
                throw error
            }
            let duration = relay.waitLimit(pending, wanted: end - api.time.instant())
            guard Set(pending.map(\.challenge.text)) == Set(texts), duration > .zero else {
                ticket.cancel()
                return .answer(answer(pending))
            }
            return .hold(ticket, duration) { [self] caller async throws(Refusal) in
                let phone = try caller.asPhone
                // An event of the change feed may be old, or may concern only another phone. So the
                // list is read again.
                guard ticket.hasHappened else { return .answer(try await answer(to: phone)) }
                return try await news(for: phone, until: end, again: true)
            }
        }

        func answer(to phone: PhoneCredential) async throws(Refusal) -> APIResponse {
            answer(try await relay.pending(for: phone))
        }

        private func answer(_ pending: [Pending]) -> APIResponse {
            let list = pending.map { each -> JSONValue in
                var object: JSONObject = [
                    "challenge": .string(each.challenge.text), "nonce": .string(Base64URL.encode(each.nonce)),
                    "context": .string(Base64URL.encode(each.context)), "expires_at": .timestamp(each.expiresAt),
                ]
                if each.asksPlace { object.set("asks_place", true) }
                if let demands = each.demands { object.set("demands", .object(demands)) }
                return .object(object)
            }
            var body: JSONObject = ["pending": .array(list)]
            body.set("pins", stated.map { .string($0) })
            body.set("time", .timestamp(api.time.now()))
            var answer = APIResponse(200, body)
            answer.apply(wait: patience)
            return answer
        }
    }
}
