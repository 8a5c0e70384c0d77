import Domain
import Metrics

/// The times of a login's steps, each from the website's request. The time until the answer includes
/// the person, so it also shows that phones ring too late.
struct LoginTimes: Sendable {
    private let pushes: Histogram
    private let answers: Histograms<Proof>

    init(_ registry: Registry) {
        pushes = registry.histogram(
            "twoefay_push_accepted_seconds",
            "Time from a login's request until the push service had accepted its push.",
            upTo: [
                .milliseconds(10), .milliseconds(20), .milliseconds(50), .milliseconds(100), .milliseconds(200),
                .milliseconds(500), .seconds(1), .seconds(2), .seconds(5), .seconds(10), .seconds(30),
            ])
        answers = registry.histograms(
            "twoefay_answer_seconds", "Time from a login's request until it was answered, by proof of the answer.",
            by: ["proof"], Proof.allCases,
            upTo: [
                .seconds(1), .seconds(2), .seconds(5), .seconds(10), .seconds(15), .seconds(20), .seconds(30),
                .seconds(60), .seconds(120), .seconds(300),
            ]
        ) { [$0.rawValue] }
    }

    /// Records a push that its service has accepted.
    func pushed(after time: Duration) { pushes.observe(time) }

    /// Records an answer, whatever it says.
    func answered(_ proof: Proof, after time: Duration) { answers.observe(proof, time) }
}
