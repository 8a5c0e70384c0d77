import Glibc
import HTTP
import JSON
import TestSupport
import Testing
import TwoefayClient

@testable import twoefay

/// `twoefay connect` while the relay or the sidecar itself ends.
@Suite("Faults of twoefay connect", .timeLimit(.minutes(15)), .mayBlock) struct ConnectFaultTests {
    @Test func absentRelayIsNeverNotFound() async throws {
        let fixture = try await Fixture(.file)
        let sidecar = try await RunningSidecar(fixture.relay)
        try await sidecar.event("reachable")
        await fixture.relay.stop()
        let absent = try await sidecar.curl("POST", "/login", #"{"username":"ada"}"#)
        #expect(absent.status == 503 && absent["code"] == "relay_unreachable", "\(absent)")
        #expect(absent.field("retry-after") == "1" && absent.field("content-type") == "application/problem+json")
        try await sidecar.event("unreachable")
        try await fixture.relay.restart()
        #expect(try await sidecar.curl("POST", "/login", #"{"username":"ada"}"#).status == 404)
        try await sidecar.event("reachable", number: 2)
    }

    /// A request that comes during a restart waits for its end. A busy machine may need some attempts,
    /// because the sidecar does not wait for long.
    @Test func requestSurvivesARestart() async throws {
        let fixture = try await Fixture(.file)
        let sidecar = try await RunningSidecar(fixture.relay)
        var answers: [Int] = []
        while answers.last != 201, answers.count < 20 {
            #expect(try await sidecar.curl("GET", "/health").status == 200)
            await fixture.relay.stop()
            let caller = try sidecar.begin("POST", "/register", #"{"username":"ada"}"#)
            try await fixture.relay.restart()
            answers.append(try await CurlCaller.read(caller).status)
        }
        #expect(answers.last == 201 && answers.dropLast().allSatisfy { $0 == 503 }, "\(answers)")
    }

    @Test(arguments: [false, true]) func lostAnswerIsAmbiguous(stopsSidecar: Bool) async throws {
        let fixture = try await Fixture(.file) { text throws in try text.set("log.level", to: "debug") }
        let sidecar = try await RunningSidecar(fixture.relay)
        _ = try await fixture.bind(try await fixture.registered("ada"))
        let challenge = try await fixture.login("ada")
        let held = try sidecar.begin(
            "POST", "/auth", #"{"challenge":"\#(challenge)"}"#, ["--header", "prefer: wait=60"])
        try await fixture.relay.logged("event=request.held")
        if stopsSidecar { sidecar.child.signal(SIGTERM) } else { await fixture.relay.kill() }
        let answer = try await CurlCaller.read(held)
        #expect(answer.status == 504 && answer["code"] == "relay_unanswered", "\(answer)")
        guard stopsSidecar else { return }
        let ended = await sidecar.child.ended()
        // The relay has answered none.
        #expect(ended.status == 0 && ended.output.hasSuffix("{\"event\":\"ended\",\"answered\":0}\n"), "\(ended)")
        #expect(access(sidecar.socket, F_OK) != 0)
    }

    @Test func onlyHarmlessRequestsAreRepeated() {
        let keyed = Fields([.init("idempotency-key", "k")])
        let requests: [(Request, Bool)] = [
            (Request(method: "GET", path: "/user/ada"), true),
            (Request(method: "POST", path: "/login", fields: keyed), true),
            (Request(method: "POST", path: "/login"), false), (Request(method: "POST", path: "/auth"), false),
            (Request(method: "DELETE", path: "/user/ada"), false),
            (Request(method: "PATCH", path: "/user/ada", fields: keyed), false),
        ]
        for (request, isRepeated) in requests {
            #expect(Sidecar.mayRepeat(request, after: .unanswered("")) == isRepeated, "\(request)")
            #expect(Sidecar.mayRepeat(request, after: .unreached("")))
            #expect(!Sidecar.mayRepeat(request, after: .cancelled))
        }
    }

    @Test func conflictWithAFirstAttemptIsWaitedOut() {
        let later = Fields([.init("retry-after", "1")])
        #expect(Sidecar.isStillRunning(Response(status: 409, fields: later)))
        #expect(!Sidecar.isStillRunning(Response(status: 409)))
        #expect(!Sidecar.isStillRunning(Response(status: 429, fields: later)))
    }

    /// The name in the relay's certificate and its authority are checked.
    @Test func wrongRelayIsNotCalled() async throws {
        let fixture = try await Fixture(.file)
        let other = try await Installed()
        let sidecar = try await RunningSidecar(fixture.relay)
        try RunningSidecar.copy(other.directory("relay/ca.pem"), to: sidecar.directory("ca.pem"))
        try await sidecar.event("reloaded")
        let answer = try await sidecar.curl("GET", "/user/ada")
        #expect(answer.status == 503 && answer["code"] == "relay_unreachable", "\(answer)")
        #expect(answer["detail"]?.string?.contains("TLS") == true, "\(answer)")
    }
}
