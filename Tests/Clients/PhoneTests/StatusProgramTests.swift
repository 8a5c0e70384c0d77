import HTTP
import JSON
import TestSupport
import Testing
import World

/// `twoefay phone status` with a real relay, and the operator's view of it.
@Suite(.timeLimit(.minutes(15))) struct StatusProgramTests {
    private func json(_ ended: Child.Ended) throws -> JSONObject {
        try #require(try JSONReader.read(Array(ended.output.utf8)).object, "\(ended.errors)")
    }

    @Test(arguments: [StoreKind.file, .mariadb], [[], ["--dpop"]])
    func reportIsSeenByWebsiteAndOperator(kind: StoreKind, identity: [String]) async throws {
        let relay = try await RunningRelay.start(kind)
        let (shop, owner) = try await relay.enrolled()
        let given = [
            "--os", "iOS", "--os-version", "26.1", "--app-version", "3.2", "--model", "iPhone 17", "--battery", "81",
            "--screen-lock", "no", "--rooted", "yes",
        ]
        let sent = try await owner.begin(["status"] + given + identity + ["--keys", owner.keys]).ended()
        #expect(sent.status == 0, "\(sent.errors)")
        for line in [
            "The relay has stored the report:", "os: iOS", "battery: 81", "screen_lock: false", "rooted: true",
        ] {
            #expect(sent.output.contains(line), "\(sent.output)")
        }
        let user = try await shop.curl("GET", "/user/alice")
        let device = try #require(user["devices"]?.array?.first?.object, "\(user)")
        let report = try #require(device["report"]?.object, "\(device)")
        let expected: JSONObject = [
            "os": "iOS", "os_version": "26.1", "patch_level": .null, "app_version": "3.2", "model": "iPhone 17",
            "battery": 81, "screen_lock": false, "rooted": true,
        ]
        for member in expected.members { #expect(report[member.name] == member.value, "\(member.name)") }

        let id = try #require(device["device"]?.string)
        let shown = try json(try await relay.operate("device", "show", id, "--json"))
        for member in expected.members {
            #expect(shown["report"]?.object?[member.name] == member.value, "\(member.name)")
        }
        let text = try await relay.operate("device", "show", id).output
        for part in ["iOS 26.1", "app 3.2", "battery 81 %", "no screen lock", "rooted", "Only the phone's software"] {
            #expect(text.contains(part), "\(text)")
        }
        let listed = try json(try await relay.operate("user", "show", "alice", "--website", "shop", "--json"))
        #expect(listed["devices"]?.array?.first?.object?["report"] == shown["report"])
    }

    @Test func phoneReportsItsMachineByDefault() async throws {
        let relay = try await RunningRelay.start()
        let (_, owner) = try await relay.enrolled()
        let sent = try await owner.begin(["status", "--app-version", "-", "--json", "--keys", owner.keys]).ended()
        let answer = try json(sent)
        let report = try #require(answer["report"]?.object)
        #expect(answer["stored"] == true && report["os"] == "Linux", "\(sent.output)")
        #expect(report["os_version"]?.string?.isEmpty == false && report["app_version"] == .null, "\(sent.output)")
    }

    @Test func unsuitableValueIsRefusedByTool() async throws {
        let relay = try await RunningRelay.start()
        let (_, owner) = try await relay.enrolled()
        for (option, value) in [("battery", "full"), ("screen-lock", "maybe"), ("patch-level", "October")] {
            let refused = try await owner.phone("status", "--\(option)", value)
            #expect(refused.status == 2 && refused.errors.contains("--\(option) must be"), "\(refused.errors)")
        }
        let refused = try await owner.phone("status", "--battery", "101")
        #expect(refused.status == 1 && refused.errors.contains("battery must be a whole number"), "\(refused.errors)")
    }
}
