import Glibc

/// The commands of this program, which the scripts `run`, `latency` and `storm` use and explain.
do {
    let arguments = Array(CommandLine.arguments.dropFirst())
    switch (arguments.first, arguments.count) {
    case ("sink", 3): try runSink(certificate: arguments[1], key: arguments[2])
    case ("throughput", 6):
        guard let port = UInt16(arguments[1]), let count = Int(arguments[3]), let underway = Int(arguments[4]) else {
            throw Fault("throughput PORT AUTHORITY COUNT UNDERWAY PAYLOAD")
        }
        try runThroughput(
            port: port, authority: arguments[2], count: count, underway: underway, payload: try contents(arguments[5]))
    case ("throughput-fcm", 5):
        guard let port = UInt16(arguments[1]), let count = Int(arguments[3]), let underway = Int(arguments[4]) else {
            throw Fault("throughput-fcm PORT AUTHORITY COUNT UNDERWAY")
        }
        try runFCMThroughput(port: port, authority: arguments[2], count: count, underway: underway)
    case ("latency", 4):
        guard let port = UInt16(arguments[1]), let rounds = Int(arguments[3]) else {
            throw Fault("latency PORT AUTHORITY ROUNDS")
        }
        try runLatency(port: port, authority: arguments[2], rounds: rounds)
    case ("fake", 3):
        guard let service = StormService(rawValue: arguments[2]) else { throw Fault("fake DIRECTORY apns|fcm") }
        try runFake(directory: arguments[1], service)
    case ("storm", 5):
        guard let count = Int(arguments[2]), let underway = Int(arguments[3]),
            let service = StormService(rawValue: arguments[4])
        else { throw Fault("storm DIRECTORY COUNT UNDERWAY apns|fcm") }
        try runStorm(directory: arguments[1], count: count, underway: underway, service)
    default: throw Fault("what to do? sink, throughput, throughput-fcm, latency, fake, storm")
    }
} catch {
    complain("PushBenchmark: \(error)")
    exit(1)
}
