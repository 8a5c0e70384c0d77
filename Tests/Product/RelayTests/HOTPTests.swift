import Bytes
import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Hardware tokens: active at once, and resynchronised by two consecutive codes.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct HOTPTests {
    private static let seed = Secret(utf8: "12345678901234567890")

    private func code(_ counter: UInt64) -> String {
        OTP.code(secret: Self.seed, counter: counter, algorithm: .sha1, digits: 6)
    }

    private func person(_ kind: StoreKind, _ policies: [String: String] = [:]) async throws -> Person {
        let rig = try await RelayRig(kind)
        return try await Person.registered("ada", at: try await rig.shop("shop", policies), rig)
    }

    @Test(
        arguments: [
            ("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", true), ("gezd gnbv gy3t qojq gezd gnbv gy3t qojq", true),
            ("hex:3132333435363738393031323334353637383930", true),
            ("HEX:3132333435363738393031323334353637383930", true),
            ("3132333435363738393031323334353637383930", false), ("hex:31323", false), ("GEZDGNBVGY3TQOJQ", false),
            ("hex:" + String(repeating: "00", count: 129), false), ("", false),
        ])
    func hotpSecretIsReadInVendorSpellings(text: String, isOne: Bool) {
        #expect((TokenSeed.secret(text)?.reveal() == Self.seed.reveal()) == isOne)
    }

    @Test(arguments: StoreKind.all) func hotpTokenIsActiveAtOnceAndUnique(kind: StoreKind) async throws {
        let ada = try await person(kind, ["further-factors": "website"])
        let operation = ada.rig.relay.operations.new()
        let token = try await ada.addHOTP(Self.seed, counter: 7, as: operation)
        #expect(token.state == .active && token.counter == 7 && token.kind == .hotp)
        #expect(try await ada.isProved)
        #expect(try await ada.addHOTP(Self.seed, counter: 7, as: ada.rig.relay.operations.again(operation.id)) == token)
        guard case .conflict(let faults) = await refusal({ try await ada.addHOTP(Self.seed) }) else {
            throw RigFailure("there are two")
        }
        #expect(faults.map(\.parameter) == ["hotp"])
        try await ada.drop(.hotp)
        #expect(try await ada.addHOTP(Self.seed).counter == 0)
    }

    @Test(arguments: StoreKind.all) func twoConsecutiveCodesResynchronise(kind: StoreKind) async throws {
        let ada = try await person(kind)
        _ = try await ada.addHOTP(Self.seed, counter: 3)
        #expect(try await ada.resynchronise([code(900), code(901)]))
        #expect(try await ada.factors().first?.counter == 902)
        // These codes and earlier ones are not accepted again.
        for (first, second) in [(900, 901), (10, 11)] as [(UInt64, UInt64)] {
            #expect(try await !ada.resynchronise([code(first), code(second)]))
            ada.rig.time.advance(by: .seconds(60))
        }
        #expect(try await ada.factors().first?.failures == 2)
        #expect(try await ada.resynchronise([code(902), code(903)]))
        #expect(try await ada.factors().first?.failures == 0)
    }

    @Test(
        arguments: [
            (1000, 1001, false), (999, 1000, true), (0, 1, true), (5, 7, false), (6, 5, false), (5, 5, false),
        ] as [(UInt64, UInt64, Bool)])
    func resynchronisationSearchesAThousandCounters(first: UInt64, second: UInt64, isRight: Bool) async throws {
        let ada = try await person(.memory)
        _ = try await ada.addHOTP(Self.seed)
        #expect(try await ada.resynchronise([code(first), code(second)]) == isRight)
    }

    @Test(arguments: StoreKind.all) func concurrentResynchronisationsCountOnce(kind: StoreKind) async throws {
        let ada = try await person(kind)
        _ = try await ada.addHOTP(Self.seed)
        let codes = [code(20), code(21)]
        let found = await withTaskGroup(of: Bool?.self) { group in
            for _ in 0..<12 { group.addTask { try? await ada.resynchronise(codes) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(found.filter { $0 == true }.count == 1)
        #expect(try await ada.factors().first?.counter == 22)
    }

    @Test func resynchronisationWithoutATokenIsAConflict() async throws {
        let ada = try await person(.memory)
        let codes = [code(1), code(2)]
        guard case .conflict = await refusal({ try await ada.resynchronise(codes) }) else {
            throw RigFailure("something was found")
        }
        guard case .invalid = await refusal({ try await ada.resynchronise([codes[0]]) }) else {
            throw RigFailure("one code was enough")
        }
    }
}
