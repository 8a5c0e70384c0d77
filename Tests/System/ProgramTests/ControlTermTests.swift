import Glibc
import TestSupport
import Testing

/// SIGTERM to the built relay while it performs changes for a caller of its control socket.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct ControlTermTests {
    private static let users = 60

    /// Locks one user after the other, and prints what the relay answered to each.
    private static let script = """
        import json, socket, sys
        for number in range(int(sys.argv[2])):
            answer = b''
            try:
                line = socket.socket(socket.AF_UNIX)
                line.connect(sys.argv[1])
                words = ['user', 'lock', 'user%d' % number, '--website=shop']
                line.sendall(json.dumps({'arguments': words}).encode() + b'\\n')
                while chunk := line.recv(65536):
                    answer += chunk
            except OSError:
                pass
            print('user%d %s' % (number, 'done' if b'"status":"ok"' in answer else 'not'), flush=True)
        """

    /// A change that the relay has not called done is not done, and the other way round.
    @Test(arguments: [StoreKind.file, .mariadb]) func outcomeOfEachChangeIsCertain(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind) { settings in
            try settings.set("control.socket", to: "unix:control")
            try settings.set("control.requests", to: "1000")
            try settings.set("control.changes", to: "1000")
        }
        for number in 0..<Self.users { _ = try await fixture.registered("user\(number)") }
        let caller = try Child("/usr/bin/python3", ["-c", Self.script, fixture.relay.file("control"), "\(Self.users)"])
        _ = try await caller.line(.output, with: "user9 ")
        let ended = await fixture.relay.stop()
        #expect(ended.status == 0, "\(ended.errors)")
        let answers = await caller.ended().output.split(separator: "\n").map {
            $0.split(separator: " ").map(String.init)
        }
        #expect(answers.count == Self.users)
        for answer in answers {
            let isLocked = "SELECT count(*) FROM user WHERE username = '\(answer[0])' AND state = 'locked'"
            #expect(try fixture.relay.count(isLocked) == (answer[1] == "done" ? 1 : 0), "\(answer)")
        }
        // The signal came in between: some are done, and some are not.
        #expect(answers.contains { $0[1] == "done" })
        let locks = "SELECT count(*) FROM audit WHERE event = 'user.locked'"
        #expect(try fixture.relay.count(locks) == Int64(answers.count { $0[1] == "done" }))
    }
}
