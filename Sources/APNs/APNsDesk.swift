import EventLoop
import HTTP
import HTTP2
import Log
import Pushing
import World

/// One loop's part of the courier: takes a push, and follows it to its outcome.
final class APNsDesk {
    /// A stream that the server has certainly not worked on is sent again so often.
    private static let replays = 3

    private let loop: EventLoop
    private let office: APNsOffice
    private var lines: [APNsEndpoint: APNsLine] = [:]
    private var underway = 0

    init(loop: EventLoop, office: APNsOffice) {
        self.loop = loop
        self.office = office
    }

    func warmUp() { line(to: office.endpoint).open() }

    func close() {
        for line in lines.values { line.close() }
    }

    private func line(to endpoint: APNsEndpoint) -> APNsLine {
        if let line = lines[endpoint] { return line }
        let line = APNsLine(
            endpoint: endpoint, loop: loop, tls: office.tls, options: office.options.client,
            randomness: office.randomness, log: office.log,
            report: { [office] in office.reached(endpoint, $0) })
        lines[endpoint] = line
        return line
    }

    func send(_ push: APNsNotification) async -> PushOutcome {
        guard APNsRequest.isToken(push.deviceToken) else { return .badRequest("the device token is not hexadecimal") }
        guard underway < office.options.capacity else {
            return .retryAfter(.seconds(1), reason: "too many pushes wait")
        }
        underway += 1
        defer { underway -= 1 }
        let left = push.expiresAt - office.time.now()
        guard left > .zero else { return .badRequest("expired unsent") }
        if let reason = office.refusal() { return .credentialFault(reason) }
        return await deliver(push, until: loop.time.instant() + min(left, office.options.deadline))
    }

    private func deliver(_ push: APNsNotification, until end: Instant) async -> PushOutcome {
        let line = line(to: office.endpoint.serving(push.environment))
        var situation = APNsSituation(sentAt: office.time.now())
        var replays = 0
        while true {
            let client: HTTP2Client
            switch await line.connection(until: end) {
            case .connection(let open): client = open.value
            case .refused(let pause, let reason): return .retryAfter(pause, reason: reason)
            }
            guard office.time.now() < push.expiresAt else { return .badRequest("expired unsent") }
            situation.sentAt = office.time.now()
            let bearer = office.token?.bearer { [loop] in loop.post($0) }
            switch await ask(push, bearer, client, line, until: end) {
            case .success(let response):
                let answer = APNsAnswer(response)
                situation.mayRenew = bearer.flatMap { office.token?.mayFollow($0) } ?? false
                situation.doubtsEnvironment = office.doubts(push.environment)
                let verdict = answer.verdict(situation)
                follow(verdict, answer, push, bearer, client, line)
                if case .settle(let outcome) = verdict.push { return outcome }
                situation.repeatedFor.insert(answer.meaning)
            case .failure(.notSent(let reason)):
                replays += 1
                guard replays <= Self.replays, loop.time.instant() < end else {
                    return .retryAfter(.seconds(1), reason: reason)
                }
                line.replace(client)
            case .failure(.ambiguous(let reason)):
                line.suspect(client)
                return .ambiguous(reason)
            }
        }
    }

    private func ask(
        _ push: APNsNotification, _ bearer: String?, _ client: HTTP2Client, _ line: APNsLine, until end: Instant
    ) async -> Result<Response, RequestFailure> {
        let request = APNsRequest.make(
            push, topic: office.topic, authority: line.endpoint.authority, authorization: bearer)
        let start = loop.time.instant()
        let overdue = loop.schedule(after: office.options.suspicion) { line.suspect(client) }
        let result = await client.send(request, deadline: max(end - start, .zero))
        loop.cancel(overdue)
        office.log.debug(
            "apns.answer",
            [
                .push: push.id, .milliseconds: (loop.time.instant() - start).wholeMilliseconds,
                .status: (try? result.get())?.status,
            ])
        return result
    }

    private func follow(
        _ verdict: APNsVerdict, _ answer: APNsAnswer, _ push: APNsNotification, _ bearer: String?,
        _ client: HTTP2Client,
        _ line: APNsLine
    ) {
        office.learn(answer, verdict, bearer: bearer, environment: push.environment)
        switch verdict.connection {
        case .keep: line.served()
        case .replace: line.replace(client)
        }
        guard answer.meaning != .accepted else { return }
        let fields: LogFields = [
            .push: push.id, .status: answer.status, .reason: answer.reason,
            .environment: push.environment.rawValue,
        ]
        if verdict.alarm {
            office.log.error("apns.refused", fields)
        } else {
            office.log.info("apns.refused", fields)
        }
    }
}
