import Glibc

// The entry of a fuzzer, for libFuzzer. `Fuzz/run` compiles it with one target, `FuzzedTarget`.
//
// With FUZZ_SEEDS=DIRECTORY, it writes the seeds there and ends. With FUZZ_MEANINGS=FILE, it appends
// a line for each input that the code accepted: the input in hexadecimal, a tab, and the meaning.

@_cdecl("LLVMFuzzerInitialize")
public func initialize(
    _ count: UnsafeMutablePointer<Int32>, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>>
) -> Int32 {
    guard let directory = getenv("FUZZ_SEEDS").map({ String(cString: $0) }) else { return 0 }
    for (number, seed) in FuzzedTarget.seeds.enumerated() {
        guard let file = fopen("\(directory)/seed-\(number)", "w") else { exit(1) }
        fwrite(seed, 1, seed.count, file)
        fclose(file)
    }
    print(FuzzedTarget.longest)
    exit(0)
}

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    if let path = getenv("FUZZ_MEANINGS") {
        guard let meaning = FuzzedTarget.meaning(bytes), let file = fopen(path, "a") else { return 0 }
        fputs("\(hexadecimal(bytes))\t\(meaning)\n", file)
        fclose(file)
        return 0
    }
    do {
        try FuzzedTarget.check(bytes)
    } catch {
        fatalError("\(FuzzedTarget.self): \(error)")
    }
    return 0
}
