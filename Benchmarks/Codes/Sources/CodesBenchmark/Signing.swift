import Bytes
import EventLoop
import Measuring
import Relay
import Storage
import World

/// Compares a store with signed rows to a store without signatures.
func signing(_ signed: String, _ plain: String, on loop: EventLoop, rounds: Int, count: Int) async throws {
    let rigs = [
        try await Rig(signed, signs: true, on: loop), try await Rig(plain, signs: false, on: loop),
    ]
    try await compare(rigs, signed.prefix { $0 != ":" }, "signed rows", rounds: rounds, count: count)
}

/// Compares a store with sealed personal values to a store with `seal: secrets`. Both sign rows.
func sealing(_ sealed: String, _ plain: String, on loop: EventLoop, rounds: Int, count: Int) async throws {
    let rigs = [try await Rig(sealed, seals: true, on: loop), try await Rig(plain, on: loop)]
    try await compare(rigs, sealed.prefix { $0 != ":" }, "sealed personal values", rounds: rounds, count: count)
}

/// Compares a store whose audit rows are signed in a chain to a store without the chain. Both sign
/// rows.
func chaining(_ chained: String, _ plain: String, on loop: EventLoop, rounds: Int, count: Int) async throws {
    let rigs = [try await Rig(chained, on: loop), try await Rig(plain, chainsAudit: false, on: loop)]
    try await compare(rigs, chained.prefix { $0 != ":" }, "the chain of the audit", rounds: rounds, count: count)
}

/// Measures logins and the codes that end them, 64 at once, in turn in the first and the second
/// store.
private func compare(
    _ rigs: [Rig], _ engine: Substring, _ what: String, rounds: Int, count: Int
) async throws {
    defer { for rig in rigs { rig.store.close() } }
    var ratios: [Double] = []
    for round in 1...rounds {
        let numbers = (round - 1) * count..<round * count
        let secrets = numbers.map { _ in Secret(SystemRandomness().bytes(20)) }
        for rig in rigs {
            try await rig.time(numbers, atOnce: 64) { number in
                let user = try await rig.register(number, email: "user\(number)@example.com")
                try await rig.bindTOTP(user, secrets[number - numbers.lowerBound])
            }
        }
        let slices = 10
        var seconds = [0.0, 0.0]
        for slice in 0..<slices {
            let part =
                numbers.lowerBound + count * slice / slices..<numbers.lowerBound + count * (slice + 1) / slices
            // The order changes, so that neither store always has the warmer machine.
            for index in slice % 2 == 0 ? [0, 1] : [1, 0] {
                let rig = rigs[index]
                seconds[index] += try await rig.time(part, atOnce: 64) { number in
                    try await rig.handIn(secrets[number - numbers.lowerBound], of: try await rig.ask(number))
                }
            }
        }
        ratios.append(seconds[1] / seconds[0])
        print(
            "\(engine) round \(round): \(whole(Double(count) / seconds[0])) logins/s with \(what), "
                + "\(whole(Double(count) / seconds[1])) logins/s without, ratio \(hundredths(seconds[1] / seconds[0]))")
    }
    print("\(engine) median: logins with \(what) to logins without \(hundredths(median(ratios)))")
}
