import EventLoop
import Glibc
import Measuring
import World

private let usage = """
    usage: CodesBenchmark verify URL ROUNDS COUNT | signing URL URL ROUNDS COUNT
        | sealing URL URL ROUNDS COUNT | chaining URL URL ROUNDS COUNT | mail URL COUNT PORT | texts URL COUNT PORT
    (Benchmarks/Codes/run starts what is needed and gives all of it)
    """

func main(_ words: [String]) async throws {
    let group = try LoopGroup.start(count: 1, time: SystemTime())
    defer { group.stopAndJoin() }
    switch words.dropFirst().first {
    case "verify" where words.count == 5:
        guard let rounds = Int(words[3]), rounds > 0, let count = Int(words[4]), count >= 100 else { break }
        return try await verify(words[2], on: group.loops[0], rounds: rounds, count: count)
    case "signing" where words.count == 6:
        guard let rounds = Int(words[4]), rounds > 0, let count = Int(words[5]), count >= 100 else { break }
        return try await signing(words[2], words[3], on: group.loops[0], rounds: rounds, count: count)
    case "sealing" where words.count == 6:
        guard let rounds = Int(words[4]), rounds > 0, let count = Int(words[5]), count >= 100 else { break }
        return try await sealing(words[2], words[3], on: group.loops[0], rounds: rounds, count: count)
    case "chaining" where words.count == 6:
        guard let rounds = Int(words[4]), rounds > 0, let count = Int(words[5]), count >= 100 else { break }
        return try await chaining(words[2], words[3], on: group.loops[0], rounds: rounds, count: count)
    case "mail" where words.count == 5:
        guard let count = Int(words[3]), count > 0, let port = UInt16(words[4]) else { break }
        return try await mail(words[2], on: group.loops[0], count: count, port: port)
    case "texts" where words.count == 5:
        guard let count = Int(words[3]), count > 0, let port = UInt16(words[4]) else { break }
        return try await texts(words[2], on: group.loops[0], count: count, port: port)
    default: break
    }
    throw Unmeasured(usage)
}

do {
    try await main(CommandLine.arguments)
} catch {
    print("not measured: \(error)")
    exit(1)
}
