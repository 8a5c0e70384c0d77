import JSON
import TestSupport
import Testing
import TwoefayClient
import World

/// Calls that are retried, their pauses, and their idempotency keys.
@Suite("Retries of RelayClient") struct RetryPolicyTests {
    private let login = LoginRequest(username: "ada")

    private func fault(_ carrier: ScriptedCarrier, _ retries: RetryPolicy = RetryPolicy()) async -> CallFault? {
        do throws(CallFault) {
            _ = try await carrier.client(retries).ask(login)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        Result.problem(503, "unavailable"), .problem(429, "limited"), .problem(409, "conflict", retryAfter: 1),
        .reply(502), .reply(504), .failure(.unreached("no route")), .failure(.unanswered("cut")),
    ]) func retriedCallKeepsItsIdempotencyKey(line: Result<RelayReply, CallFault>) async throws {
        let carrier = ScriptedCarrier(line, line, .asked, .asked)
        let client = carrier.client()
        #expect(try await client.ask(login).challenge == "c1")
        #expect(carrier.calls.count == 3 && carrier.pauses.count == 2)
        #expect(carrier.calls[0] == carrier.calls[1] && carrier.calls[1] == carrier.calls[2])
        let key = try #require(carrier.calls[0].fields["idempotency-key"])
        #expect(key.count == 32)
        // A second login has another idempotency key.
        _ = try await client.ask(login)
        #expect(carrier.calls[3].fields["idempotency-key"] != key)
        #expect(carrier.calls[3].body?["request"] != carrier.calls[0].body?["request"])
    }

    @Test(arguments: [
        Result.problem(400, "invalid"), .problem(401, "unauthenticated"), .problem(403, "forbidden"),
        .problem(404, "not_found"), .problem(409, "conflict"), .problem(409, "shown_once"),
        .problem(422, "idempotency_mismatch"), .problem(500, "internal"), .failure(.unable("no")),
        .failure(.cancelled), .failure(.odd("no")),
    ]) func permanentRefusalIsNotRetried(line: Result<RelayReply, CallFault>) async {
        let carrier = ScriptedCarrier(line, .asked)
        let fault = await fault(carrier)
        #expect(fault != nil && carrier.calls.count == 1 && carrier.pauses == [])
    }

    // MARK: Calls without an idempotency key

    private static let lost: [Result<RelayReply, CallFault>] = [
        .failure(.unanswered("cut")), .reply(502), .reply(504),
    ]

    /// A retry would send a second code to the address, or use an approval twice.
    @Test(arguments: lost) func nonRepeatableCallIsNotRetried(line: Result<RelayReply, CallFault>) async {
        let changes: [(RelayClient.Change, approval: String?)] = [
            (.init(email: .to("b@example.com")), nil), (.init(phone: .to("+4312345")), nil),
            (.init(email: .removed), "c9"),
        ]
        for (change, approval) in changes {
            let carrier = ScriptedCarrier(line, .reply(200, ["waiting": []]))
            await #expect(throws: CallFault.self) {
                try await carrier.client().change("ada", change, approval: approval)
            }
            #expect(carrier.calls.count == 1)
        }
    }

    @Test(arguments: [
        Result.problem(503, "unavailable"), .problem(429, "limited"), .failure(.unreached("no route")),
    ]) func unsentCallIsRetried(line: Result<RelayReply, CallFault>) async throws {
        let carrier = ScriptedCarrier(line, .reply(200, ["waiting": ["b@example.com"]]))
        let waiting = try await carrier.client().change("ada", .init(email: .to("b@example.com")))
        #expect(waiting == ["b@example.com"] && carrier.calls.count == 2)
    }

    @Test(arguments: lost) func idempotentChangeIsRetried(
        line: Result<RelayReply, CallFault>
    ) async throws {
        let carrier = ScriptedCarrier(line, .reply(200, ["waiting": []]))
        let change = RelayClient.Change(email: .removed, displayName: .to("Ada"))
        #expect(try await carrier.client().change("ada", change) == [])
        #expect(carrier.calls.count == 2)
    }

    /// The first attempt succeeded, and its answer was lost.
    @Test(arguments: lost) func retriedDeleteOfAMissingResourceSucceeds(line: Result<RelayReply, CallFault>)
        async throws
    {
        let carrier = ScriptedCarrier(line, .failure(.unreached("no route")), .problem(404, "not_found"))
        try await carrier.client().forget("ada")
        #expect(carrier.calls.map(\.method) == ["DELETE", "DELETE", "DELETE"])
    }

    @Test func firstDeleteOfAMissingResourceFails() async {
        let scripts = [
            ScriptedCarrier(.problem(404, "not_found")),
            // The first attempt was not sent, so it deleted nothing.
            ScriptedCarrier(.failure(.unreached("no route")), .problem(404, "not_found")),
            // The 404 without a problem body does not come from the relay.
            ScriptedCarrier(.failure(.unanswered("cut")), .reply(404)),
        ]
        for carrier in scripts {
            let fault = await #expect(throws: CallFault.self) { try await carrier.client().forget("ada") }
            #expect(fault?.problem?.status == 404)
        }
        let reading = ScriptedCarrier(.failure(.unanswered("cut")), .problem(404, "not_found"))
        await #expect(throws: CallFault.self) { try await reading.client().user("ada") }
    }

    /// The pauses double, with up to half of their length added. Retries end at the policy's
    /// timeout.
    @Test func retriesBackOffExponentially() async throws {
        let carrier = ScriptedCarrier(
            .failure(.unreached("1")), .failure(.unreached("2")), .failure(.unreached("3")),
            .failure(.unreached("4")), .failure(.unreached("5")), .asked)
        let policy = RetryPolicy(
            firstPause: .milliseconds(100), longestPause: .milliseconds(300), timeout: .milliseconds(1200))
        let fault = await fault(carrier, policy)
        let pauses = carrier.pauses
        try #require(pauses.count >= 3)
        #expect((.milliseconds(100)...(.milliseconds(150))).contains(pauses[0]))
        #expect((.milliseconds(200)...(.milliseconds(300))).contains(pauses[1]))
        #expect(pauses[2...].allSatisfy { (.milliseconds(300)...(.milliseconds(450))).contains($0) })
        #expect(pauses.reduce(.zero, +) <= .milliseconds(1200))
        #expect(fault == .unreached(String(carrier.calls.count)))
    }

    @Test func retryAfterIsRespected() async throws {
        let carrier = ScriptedCarrier(.problem(503, "unavailable", retryAfter: 2), .asked)
        #expect(await fault(carrier) == nil)
        let pause = try #require(carrier.pauses.first)
        #expect((.seconds(2)...(.milliseconds(2100))).contains(pause))
    }

    /// A person waits for this call.
    @Test func longRetryAfterEndsTheCall() async throws {
        let carrier = ScriptedCarrier(.problem(429, "limited", retryAfter: 120), .asked)
        let problem = try #require(await fault(carrier)?.problem)
        #expect(problem.code == .limited && problem.retryAfter == .seconds(120))
        #expect(carrier.calls.count == 1)
    }

    @Test func callWithoutRetriesRunsOnce() async {
        let carrier = ScriptedCarrier(.problem(503, "unavailable"), .asked)
        #expect(await fault(carrier, .never)?.problem?.status == 503)
        #expect(carrier.calls.count == 1)
    }

    @Test func problemDocumentIsReported() async throws {
        let carrier = ScriptedCarrier(
            .reply(
                400,
                [
                    "type": "urn:twoefay:problem:invalid", "title": "Invalid parameters",
                    "status": 400, "code": "invalid", "detail": "ip must be an address",
                    "errors": [
                        [
                            "parameter": "ip", "code": "format", "message_key": "ip.format",
                            "message": "must be an address",
                        ]
                    ],
                ], fields: ["Request-ID": "r1"]))
        let problem = try #require(await fault(carrier)?.problem)
        #expect(problem.code == .invalid && problem.status == 400 && problem.requestID == "r1")
        let wrong = try #require(problem.faults.first)
        #expect(problem.faults.count == 1 && wrong.parameter == "ip" && wrong.code == "format")
        #expect(wrong.messageKey == "ip.format" && wrong.message == "must be an address")
        #expect(problem.retryAfter == nil && problem.approval == nil)
        #expect("\(problem)" == "400 invalid: ip must be an address (request r1)")
    }

    /// A proxy can return its own page.
    @Test func answerNotFromTheRelayIsReported() async throws {
        let carrier = ScriptedCarrier(.success(RelayReply(status: 403, body: Array("<html>".utf8))))
        #expect(await fault(carrier)?.problem?.code == .foreign)
        for body in ["<html>", "[]", #"{"challenge": 1}"#, ""] {
            let carrier = ScriptedCarrier(
                .success(
                    RelayReply(status: 201, fields: ["content-type": "application/json"], body: Array(body.utf8))))
            guard case .odd = await fault(carrier) else {
                Issue.record("\(body) passed for a login")
                continue
            }
        }
    }

    @Test func cancelledTaskEndsTheRetries() async {
        let carrier = ScriptedCarrier(.asked)
        let cancelled = Task {
            while !Task.isCancelled { await Task.yield() }
            return await fault(carrier)
        }
        cancelled.cancel()
        #expect(await cancelled.value == .cancelled)
        #expect(carrier.calls == [])
    }
}
