import Crypto
import Daemon
import EventLoop
import HTTP
import JSON
import Phone
import World

/// A phone that polls its relay for challenges. It is used only on its loop.
final class PolledPhone {
    private let session: PhoneSession
    private let loop: EventLoop
    private let entry: Keyring.Entry
    private var responder: Responder
    private var isOver = false
    /// The challenges and refusals that were printed already.
    private var known: Set<String> = []
    /// The time before which the phone does not ask for a certificate again; nil if none was refused.
    private var renewalAt: Instant?
    /// The number of unread notices that was printed last.
    private var unread = 0

    /// The pause between two requests, if the relay answers at once and reports nothing new.
    private static let pause: Duration = .seconds(2)
    private static let longestPause: Duration = .seconds(30)
    /// The pause after a refused renewal, unless the relay names a longer one.
    private static let renewalPause: Duration = .seconds(3600)

    init(_ entry: Keyring.Entry, of session: PhoneSession) throws(Failure) {
        self.entry = entry
        self.session = session
        loop = session.loop
        do throws(CallFailure) {
            responder = try Responder(
                entry.enrolment, by: session.options.identity, language: PhoneOptions.language, loop: session.loop)
        } catch {
            throw Failure(error)
        }
    }

    var device: String { responder.device }
    var website: String { responder.enrolment.website }
    var relay: String { responder.enrolment.relay.text }

    func start() {
        let shared = LoopBound(self, on: loop)
        loop.spawn { await shared.value.watch() }
    }

    func stop() {
        isOver = true
        responder.close()
    }

    func emit(_ text: String, _ event: String, _ members: JSONObject) {
        guard !isOver else { return }
        var all: JSONObject = ["device": .string(device), "website": .string(website)]
        for member in members.members { all.set(member.name, member.value) }
        session.output(text, event, all)
    }

    /// Returns true for a challenge the first time.
    func isNew(_ question: ChallengePrompt) -> Bool { known.insert(question.challenge).inserted }

    func answer(
        _ decision: SignedStatement.Decision, to question: ChallengePrompt, _ options: PhoneSession.Options
    ) async throws(CallFailure) -> String {
        try await responder.answer(
            decision, to: question, uv: options.uv, uvAge: options.uvAge, place: options.place,
            posture: options.posture, pin: options.pin)
    }

    private func watch() async {
        var failures = 0
        var open: [String] = []
        while !isOver {
            do throws(CallFailure) {
                try await renew()
                let start = loop.time.instant()
                let pending = try await responder.pending(waiting: Responder.longestWait, knowing: open)
                failures = 0
                let hadEnds = !Set(open).isSubset(of: pending.challenges)
                open = pending.challenges
                if isOver { return }
                try adopt(pending)
                let hasNews = take(pending) || hadEnds
                countNotices()
                // If two programs watch the same phone, the relay ends the held request of one when
                // the other asks. The pause keeps them from a fast loop.
                if !hasNews && loop.time.instant() - start < Self.pause { await loop.sleep(for: Self.pause) }
            } catch {
                if isOver { return }
                guard error.mayPass else { return session.drop(self, Failure(error)) }
                failures += 1
                let pause = min(Self.longestPause, .seconds(1 << min(failures, 5)))
                emit(
                    "\(error.description); next attempt in \(pause.wholeMilliseconds / 1000) s.", "trouble",
                    [
                        "error": .string(error.description),
                        "again_in_milliseconds": .integer(pause.wholeMilliseconds),
                    ])
                await loop.sleep(for: pause)
            }
        }
    }

    /// Returns whether the answer contained anything new.
    private func take(_ pending: Responder.Pending) -> Bool {
        let count = known.count
        for refused in pending.refused where known.insert(refused.challenge ?? "").inserted {
            emit(
                "A challenge cannot be shown or answered here: \(refused.reason).", "refused",
                ["challenge": refused.challenge.map { .string($0) } ?? .null, "reason": .string(refused.reason)])
        }
        session.offer(pending.questions, to: self)
        return known.count > count
    }

    /// Prints the number of unread notices if it has changed.
    private func countNotices() {
        let count = responder.messageCount
        guard count != unread else { return }
        unread = count
        let text =
            count == 0
            ? "There are no new notices."
            : "\(count) new \(count == 1 ? "notice" : "notices"): twoefay phone notices --device \(device)"
        emit(text, "notices", ["unread": .integer(Int64(count))])
    }

    /// Stores the pins that the relay's authority has stated, and uses them from now on.
    private func adopt(_ pending: Responder.Pending) throws(CallFailure) {
        if let fault = pending.pinsFault, known.insert("pins: \(fault.description)").inserted {
            emit(
                "A statement about the relay's authority is refused: \(fault.description).", "trouble",
                ["error": .string(fault.description)])
        }
        guard let enrolment = pending.repinned else { return }
        let isChange = Set(enrolment.pins) != Set(responder.enrolment.pins)
        try goOn(with: enrolment)
        guard isChange else { return }
        let text =
            enrolment.nextPin == nil
            ? "The phone trusts one authority of the relay." : "The phone also trusts the relay's next authority."
        emit(text, "pins", ["sequence": .integer(enrolment.pinSequence)])
    }

    /// Renews the certificate if it ends soon. If the relay refuses that for now, the phone goes on
    /// with what it has: the certificate, or DPoP once that has expired.
    private func renew() async throws(CallFailure) {
        guard responder.isToRenew, renewalAt.map({ loop.time.instant() >= $0 }) != false else { return }
        let enrolment: Enrolment
        do throws(CallFailure) {
            enrolment = try await responder.change(renews: true, storing: session.keyring.storing(entry))
        } catch {
            guard let refusal = error.postponement else { throw error }
            let pause = max(Self.renewalPause, .seconds(refusal.retryAfter ?? 0))
            renewalAt = loop.time.instant() + pause
            return emit(
                "The certificate is not renewed yet: \(error.description).", "trouble",
                [
                    "error": .string(error.description),
                    "again_in_milliseconds": .integer(pause.wholeMilliseconds),
                ])
        }
        try goOn(with: enrolment)
        let until = enrolment.certificate?.notAfter.rfc3339 ?? ""
        emit("The certificate is renewed, and expires at \(until).", "renewed", ["expires_at": .string(until)])
    }

    /// Stores a changed enrolment, and connects anew with it.
    private func goOn(with enrolment: Enrolment) throws(CallFailure) {
        do throws(Failure) {
            try session.keyring.update(entry, enrolment)
        } catch {
            throw .unable(error.text)
        }
        responder.close()
        responder = try Responder(
            enrolment, by: session.options.identity, language: PhoneOptions.language, loop: loop)
    }
}
