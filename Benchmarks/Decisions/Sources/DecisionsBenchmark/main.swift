import Bytes
import Crypto
import Domain
import Glibc
import JSON
import Measuring
import World

/// A decision as it arrives, and the stored data about the phone and the challenge.
struct Answered {
    let publicKey: [UInt8]
    let receipt: String
    let audience: String
    let device: DeviceID
    let challenge: ChallengeID
    let nonce: [UInt8]
    let context: [UInt8]

    init(website: String) throws {
        let key = try P256PrivateKey.generate()
        guard let device = DeviceID(SystemRandomness().bytes(16)),
            let challenge = ChallengeID(SystemRandomness().bytes(16))
        else { throw Unmeasured("no ids") }
        let now = SystemTime().now()
        publicKey = key.publicKey.x963
        audience = SignedDecision.audience(origin: "https://login.example.com:8080", website: website)
        self.device = device
        self.challenge = challenge
        nonce = SystemRandomness().bytes(16)
        context =
            Context(
                website: website, displayName: "The Shop", username: "ada", service: "Payments", action: "transfer",
                details: [
                    Context.Detail(label: "amount", value: "12.50 EUR"),
                    Context.Detail(label: "payee", value: "Zoë Ünal"),
                ], ip: "203.0.113.7", place: "Vienna, Austria",
                userAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
                request: Base64URL.encode(nonce), numberDigits: 2, device: nil, createdAt: now,
                expiresAt: now + .seconds(300)
            ).bytes
        let claims: JSONObject = [
            "v": 1, "aud": .string(audience), "challenge": .string(challenge.text),
            "request": .string(Base64URL.encode(nonce)), "decision": "approve", "number": "47",
            "context": .string(Base64URL.encode(SHA256.hash(context))), "nonce": .string(Base64URL.encode(nonce)),
            "uv": "biometric", "iat": .integer(now.seconds),
        ]
        receipt = try JWS.sign(
            header: ["typ": .string(SignedDecision.type), "kid": .string(device.text)],
            payload: JSONWriter.write(claims), key: key)
    }

    /// Makes all checks that a relay makes before it acts on the decision.
    func judge() throws {
        let key = try P256PublicKey(x963: publicKey)
        let decision = try SignedDecision(
            receipt,
            about: SignedDecision.Subject(
                audience: audience, device: device, key: key, challenge: challenge, nonce: nonce, context: context,
                asksNumber: true, approves: true))
        guard decision.number == "47" else { throw Unmeasured("another number") }
    }
}

/// Returns the processor time of this thread, in seconds.
func coreTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Returns the microseconds of one core that one call takes.
func cost(seconds: Double, _ call: (Int) throws -> Void) rethrows -> Double {
    let start = coreTime()
    var calls = 0
    while coreTime() - start < seconds {
        for _ in 0..<64 {
            try call(calls)
            calls += 1
        }
    }
    return (coreTime() - start) / Double(calls) * 1e6
}

func tenths(_ value: Double) -> String {
    let whole = Int((value * 10).rounded())
    return "\(whole / 10).\(whole % 10)"
}

/// The limit for one decision, in microseconds of one core.
let limit = 150.0

/// Runs the benchmark. Returns true if a decision takes less than the limit.
func main(_ words: [String]) throws -> Bool {
    guard words.count == 3, let rounds = Int(words[1]), rounds > 0, let seconds = Double(words[2]), seconds > 0 else {
        throw Unmeasured("ROUNDS SECONDS")
    }
    // Many phones, so that no call repeats the previous one.
    let answered = try (0..<256).map { try Answered(website: "shop-\($0)") }
    let bare = try answered.map { one in
        (key: try P256PublicKey(x963: one.publicKey), object: try JWS.parse(one.receipt))
    }
    var judged: [Double] = []
    var verified: [Double] = []
    for round in 1...rounds {
        judged.append(try cost(seconds: seconds) { try answered[$0 % answered.count].judge() })
        verified.append(
            try cost(seconds: seconds) { call in
                let (key, object) = bare[call % bare.count]
                guard object.verify(key) else { throw Unmeasured("not verified") }
            })
        print(
            "round \(round): \(tenths(judged[round - 1])) us a decision, \(tenths(verified[round - 1])) us the bare "
                + "verification")
    }
    let (all, part) = (median(judged), median(verified))
    print(
        "median: \(tenths(all)) us of one core a decision (\(Int(1e6 / all)) a second), \(tenths(part)) us the bare "
            + "verification, ratio \(tenths(all / part))")
    let isEnough = all < limit
    print(isEnough ? "less than \(tenths(limit)) us, as wanted" : "too much: wanted is less than \(tenths(limit)) us")
    return isEnough
}

do {
    exit(try main(CommandLine.arguments) ? 0 : 1)
} catch {
    print("not measured: \(error)")
    exit(2)
}
